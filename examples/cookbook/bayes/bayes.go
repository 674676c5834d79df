package main

import (
	"math"
	"strings"
)

// bayes is a naive Bayes classifier of texts: is this about the topic?
type bayes struct {
	words map[string][2]int // of texts about it, and of others
	total [2]int
}

func newBayes() *bayes { return &bayes{words: map[string][2]int{}} }

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
}

// learn takes a text as an example.
func (b *bayes) learn(about bool, text string) {
	class := 1
	if about {
		class = 0
	}
	for _, w := range wordsOf(text) {
		n := b.words[w]
		n[class]++
		b.words[w] = n
		b.total[class]++
	}
}

// odds returns how much likelier it is that a text is about the topic than that it is not. Words that no
// example has say nothing; others count once more than they were seen (Laplace).
func (b *bayes) odds(text string) float64 {
	log := 0.0
	for _, w := range wordsOf(text) {
		if n, known := b.words[w]; known {
			of := func(class int) float64 { return float64(n[class]+1) / float64(b.total[class]+len(b.words)) }
			log += math.Log(of(0) / of(1))
		}
	}
	return math.Exp(log)
}

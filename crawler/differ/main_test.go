package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVerdicts(t *testing.T) {
	const tree = `{"elements":[{"tag":"a","in":"body","attributes":{"href":"/1"}}],"aside":"<template><a href=/2></template>"}`
	for _, c := range []struct {
		asked           question
		answer, verdict string
	}{
		{&urlQuestion{Ref: "HTTP://A.example", Normal: "http://a.example/"}, `{"href":"http://a.example/","again":"http://a.example/"}`, ""},
		{&urlQuestion{Base: "?", Ref: "http:a", Normal: "http://a/"}, `{"alone":"http://a/","again":"http://a/"}`, "we: a link needs no base"},
		{&urlQuestion{Ref: "http://1.\u05d0/"}, `{"href":"http://1.xn--4db/"}`, "we: ada judges"},
		{&urlQuestion{Ref: "x://a"}, `{"href":"x://b"}`, unjudged + "Reference: x://a"},
		{&urlQuestion{Base: "http://a/", Ref: "b", Normal: "http://a/c"}, `{"href":"http://a/b"}`, unjudged + "normal form: http://a/c"},
		{&pageQuestion{"<a href=/1>"}, tree, ""},
		{&pageQuestion{"<a href=/1><a href=/2>"}, tree, "we: a template"},
		{&pageQuestion{"<a href=/1><a href=/3>"}, tree, unjudged + `more: "/3"`},
		{&pageQuestion{"<a href=/1><frame src=/3>"}, tree, "both: a frame"},
		{&pageQuestion{"<a>"}, tree, unjudged + `lost: "/1"`},
		{&robotsQuestion{"User-agent: *\nDisallow: /%61", "a", "http://a/a", "", ""}, `{"written":true,"form":false}`, "we: characters"},
		{&robotsQuestion{"User-agent: *\nDisallow: /a", "a", "http://a/a", "", ""}, `{"written":false}`, ""},
		{&robotsQuestion{"User-agent: *\nDisallow: /a", "a", "http://a/a", "", ""}, `{"written":true,"form":true}`, unjudged + "allowed: false"},
		{&robotsQuestion{"User-agents: *\nDisallow: /a", "a", "http://a/a", "", ""}, `{"written":false,"form":false}`, "both: Google takes what begins"},
		{&robotsQuestion{}, "no JSON", unjudged},
	} {
		got := c.asked.judge([]byte(c.answer))
		assert.True(t, strings.HasPrefix(got, c.verdict) && (c.verdict != "" || got == ""), "%+v: %q", c.asked, got)
	}
}

// A seed makes the same questions again, and what they ask is valid.
func TestQuestions(t *testing.T) {
	for name, make := range map[string]func(*rand.Rand) question{
		"urls":   func(r *rand.Rand) question { return makeURL(r, madeUp) },
		"pages":  makePage,
		"robots": makeRobots,
	} {
		a, b := rand.New(rand.NewPCG(1, 0)), rand.New(rand.NewPCG(1, 0))
		different := map[string]bool{}
		for range 1000 {
			q := make(a)
			assert.Equal(t, q, make(b), name)
			var f findings
			f.add(q, nil, unjudged+"x")
			different[f.unjudged[0]] = true
		}
		assert.Greater(t, len(different), 900, name)
	}
	assert.Equal(t, "/a%C3%A4Z/%5B*XYZ$", oneForm("/%61\u00e4%24/[*%2a$", "*", true))
}

func TestFindings(t *testing.T) {
	f := &findings{count: map[string]int{}, example: map[string]string{}}
	f.add(&robotsQuestion{Robots: "longer"}, []byte("true\n"), "we: x")
	f.add(&robotsQuestion{}, []byte("true\n"), "we: x")
	f.add(&robotsQuestion{}, []byte("true\n"), "")
	f.add(&robotsQuestion{}, []byte("true\n"), unjudged+"y")
	var b strings.Builder
	f.print(&b, 10)
	assert.Equal(t, 3, f.total())
	assert.Contains(t, b.String(), "      2  we: x\n         such as {\"robots\":\"\"")
	assert.Contains(t, b.String(), "      1  without a verdict\n         y: {")
}

func TestPeerFails(t *testing.T) {
	_, err := kind{name: "robots", make: makeRobots}.compare("false", 5000, rand.New(rand.NewPCG(1, 0)))
	require.ErrorContains(t, err, "the peer ended")
}

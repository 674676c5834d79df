package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sign is a Value.
type sign bool

func (x *sign) Scan(in *Scanner) error {
	text, err := in.Text()
	*x = text == "+"
	if err == nil && text != "+" && text != "-" {
		err = errors.New("no sign")
	}
	return err
}

func (x *sign) UnmarshalJSON(b []byte) error {
	var in Scanner
	in.b = b
	return x.Scan(&in)
}

type promoted struct{ Below *uint32 }

// thing has a member of each type.
type thing struct {
	URL    string
	Text   *string
	Number int
	promoted
	Small  uint8
	Large  *int64
	Real   float64
	Is     bool
	Bytes  []byte
	List   []int
	Thing  *thing
	Inside struct{ A, B uint16 }
	Sign   sign
	Signs  *sign
	Named  int `json:"other_name"`
}

// What encoding/json refuses, or is unknown or there twice, is refused, and nothing else; what is read is the same.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		`{}`, ` { } `, ``, `null`, `[]`, `{"url":"http://a.example/","number":12,"below":4294967295,"small":255,"large":-9223372036854775808,"real":1.5e3}`,
		`{"number":01}`, `{"number":-0}`, `{"number":1234567890123456789}`, `{"number":12345678901234567890}`, `{"number":1.0}`, `{"small":256}`, `{"small":-1}`, `{"real":1.}`, `{"real":-0.5E+1 , "is":true}`,
		`{"is":false,"bytes":"YQ==","list":[1,2,3],"thing":{"thing":{"url":"x"},"url":"y"},"inside":{"a":1,"b":2},"sign":"+","signs":"-","other_name":7}`,
		`{"bytes":""}`, `{"bytes":"YQ"}`, `{"list":[]}`, `{"list":[1,]}`, `{"list":[,1]}`, `{"list":[null]}`, `{"url":"a",}`, `{"url":"a" "text":"b"}`, `{"url":null,"number":null,"thing":null}`, `{"url":nullx}`,
		`{"text":"\u00e9\ud83d\ude00\n\"\\"}`, `{"text":"\ud800"}`, `{"text":"\x"}`, "{\"text\":\"\xff\"}", "{\"text\":\"a\tb\"}", `{"text":"`, `{"te\u0078t":"a"}`, `{"text":"a","text":"b"}`, `{"nope":null}`,
		`{"URL":"a"}`, `{"Named":1}`, `{"sign":"*"}`, `{"sign":1}`, `{} {}`, `{}x`, `{"":1}`,
	} {
		f.Add([]byte(line))
	}
	var in Scanner
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want thing
		err := in.Line(b, &got)
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		wrong := d.Decode(&want)
		if wrong == nil && (!json.Valid(b) || !utf8.Valid(b)) {
			wrong = errors.New("not one value of UTF-8")
		}
		if err == nil {
			require.NoError(t, wrong, "%s", b)
			require.Equal(t, want, got, "%s", b)
			return
		}
		// encoding/json takes null for anything, names in any case and more than once, and breaks in base64.
		if wrong == nil && !bytes.Contains(b, []byte("null")) && !strings.Contains(err.Error(), "there twice") && !errors.Is(err, ErrMember) {
			t.Errorf("%s: %v", b, err)
		}
	})
}

func TestWhatIsNotTaken(t *testing.T) {
	for line, says := range map[string]string{
		`{"nope":null}`:              "nope: there is no such member",
		`{"Number":1}`:               "Number: there is no such member",
		`{"number":1,"number":null}`: "number: it is there twice",
		`{"thing":{"is":1}}`:         `thing: is: malformed JSON: "1}}" where true or false should be`,
		`{"list":[null]}`:            `list: malformed JSON: "null]}" where a number should be`,
		`{"wait":"5x"}`:              `wait: time: unknown unit "x" in duration "5x"`,
		`{"time":"now"}`:             `time: "now" is no time; want one as 2006-01-02T15:04:05Z`,
		`{"small":256}`:              "small: 256 is out of range",
		`{"number":1.5}`:             `number: "1.5" is no integer`,
		`{"url":"x"`:                 "malformed JSON: it ends where a comma should be",
		`{"url":"x"} 1`:              `malformed JSON: "1" where the end should be`,
		`{"url":"x",}`:               `malformed JSON: "}" where a value should be`,
		`null`:                       `malformed JSON: "null" where '{' should be`,
	} {
		var x struct {
			thing
			Time time.Time
			Wait *time.Duration
		}
		require.EqualError(t, new(Scanner).Line([]byte(line), &x), says)
	}
}

// Any string comes back, and encoding/json reads the same.
func TestStringsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]*`), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		var w Writer
		w.Open()
		w.Word("url", text)
		w.Close()
		var got, want thing
		require.NoError(t, new(Scanner).Line(w, &got))
		require.NoError(t, json.Unmarshal(w, &want))
		require.Equal(t, want, got)
		require.Equal(t, strings.ToValidUTF8(text, "\ufffd"), got.URL)
	})
}

func TestWriter(t *testing.T) {
	var w Writer
	w.Open()
	w.Text("a", "")
	w.Int("b", 0)
	w.Bool("c", false)
	w.Time("d", 0)
	w.Word("e", "")
	w.Number("f", 0)
	w.Name("g")
	w.Open()
	w.Float("h", 0.5, 'g')
	w.Bool("i", true)
	w.Close()
	w.Time("j", 1e12)
	w.Time("k", 1e15)
	w.Text("l", "\n\"\\\x00é\xff")
	w.Close()
	assert.Equal(t, `{"e":"","f":0,"g":{"h":0.5,"i":true},"j":"2001-09-09T01:46:40.000Z","k":1000000000000000,"l":"\u000a\"\\\u0000é`+"\ufffd"+`"}`, string(w))
}

func TestTimesAndDurations(t *testing.T) {
	var x struct {
		None, Time time.Time
		Wait       time.Duration
		Spell      *time.Duration
	}
	require.NoError(t, new(Scanner).Line([]byte(`{"none":"","time":"2001-09-09T01:46:40.5Z","wait":"1.5s","spell":"-2h"}`), &x))
	assert.Zero(t, x.None)
	assert.Equal(t, time.UnixMilli(1e12+500).UTC(), x.Time)
	assert.Equal(t, []time.Duration{1500 * time.Millisecond, -2 * time.Hour}, []time.Duration{x.Wait, *x.Spell})
}

package password

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// The cost of guessing a piece of a password, in bits.
const (
	perDigit     = 3.3 // one of ten
	perLetter    = 4.7 // one of 26
	perOther     = 6.0 // another printable character
	perYear      = 7.0 // one of about a hundred years
	perRun       = 4.0 // start of a run such as abcd or 9876; its length is extra
	perWalk      = 5.0 // start of a walk over the keyboard; its length and turns are extra
	perRepeat    = 3.0 // repetition of a piece; its length is extra
	perVariation = 1.5 // capitals, or digits for letters
)

// bits estimates how hard text is to guess: the least sum of the costs of pieces that
// compose it. Its running time grows with the square of the length.
func bits(text string, about []string) float64 {
	p := newPuzzle(text, about)
	least := make([]float64, len(p.lower)+1) // by number of characters composed
	for end := 1; end <= len(p.lower); end++ {
		least[end] = least[end-1] + single(p.lower[end-1])
		for start := range end {
			if cost, ok := p.piece(start, end); ok {
				least[end] = min(least[end], least[start]+cost)
			}
		}
	}
	return least[len(p.lower)]
}

// puzzle is a text to compose from pieces, prepared for their costs. Its slices have an
// element for each character.
type puzzle struct {
	lower   []rune
	capital []bool
	plain   [][]rune // lower with digits and signs replaced by letters, one per variant
	run     []int    // number of characters up to here in a run of equal steps
	walk    []walk   // walk over the keyboard that ends here
	again   []int    // number of characters from here on that occurred before
	about   map[string]bool
}

func newPuzzle(text string, about []string) *puzzle {
	p := &puzzle{about: map[string]bool{"holdfast": true}}
	for _, r := range text {
		l := unicode.ToLower(r)
		p.lower, p.capital = append(p.lower, l), append(p.capital, l != r)
	}
	for _, one := range []rune{'i', 'l'} {
		p.plain = append(p.plain, undisguise(p.lower, one))
	}
	p.run, p.walk, p.again = runs(p.lower), walks(p.lower), repeats(p.lower)
	for _, words := range about {
		words = strings.ToLower(words)
		p.about[words] = true
		for _, word := range strings.FieldsFunc(words, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			p.about[word] = true
		}
	}
	return p
}

// single returns the cost of one character.
func single(r rune) float64 {
	switch {
	case unicode.IsDigit(r):
		return perDigit
	case unicode.IsLetter(r):
		return perLetter
	default:
		return perOther
	}
}

// piece returns the cost of the characters from start to end together, false if they are
// not a known piece.
func (p *puzzle) piece(start, end int) (float64, bool) {
	n := end - start
	if n < 3 {
		return 0, false
	}
	cost := math.Inf(1)
	if n <= longest {
		cost = min(cost, p.word(start, end))
	}
	if p.run[end-1] >= n {
		cost = min(cost, perRun+math.Log2(float64(n)))
	}
	if p.walk[end-1].length >= n && n > 3 {
		cost = min(cost, perWalk+math.Log2(float64(n))+float64(p.walk[end-1].turnsIn(n)))
	}
	if n == 4 && isYear(p.lower[start:end]) {
		cost = min(cost, perYear)
	}
	if p.again[start] >= n {
		cost = min(cost, perRepeat+math.Log2(float64(n)))
	}
	return cost, !math.IsInf(cost, 1)
}

// word returns the cost of a commonly used password or a word related to the account, as
// it is or in disguise.
func (p *puzzle) word(start, end int) float64 {
	cost, extra := math.Inf(1), 0.0
	if slices.Contains(p.capital[start:end], true) {
		extra = perVariation
	}
	if rank, ok := p.rank(string(p.lower[start:end])); ok {
		cost = math.Log2(float64(rank)) + extra
	}
	for _, plain := range p.plain {
		if rank, ok := p.rank(string(plain[start:end])); ok {
			cost = min(cost, math.Log2(float64(rank))+extra+perVariation)
		}
	}
	return cost
}

// rank returns a word's rank among the common ones, starting at 1.
func (p *puzzle) rank(word string) (int, bool) {
	if p.about[word] {
		return 1, true
	}
	rank, ok := common()[word]
	return rank, ok
}

func isYear(digits []rune) bool {
	text := string(digits)
	return (strings.HasPrefix(text, "19") || strings.HasPrefix(text, "20")) && unicode.IsDigit(digits[2]) && unicode.IsDigit(digits[3])
}

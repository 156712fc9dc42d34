package password

import (
	"slices"
	"strings"
)

// runs returns, for each character, how many characters up to it form a run of equal
// steps: abcd, 4321 and aaaa have 4.
func runs(text []rune) []int {
	length := make([]int, len(text))
	for i := range text {
		length[i] = min(i+1, 2)
		if i < 2 {
			continue
		}
		if step := text[i] - text[i-1]; step == text[i-1]-text[i-2] && step >= -1 && step <= 1 {
			length[i] = length[i-1] + 1
		}
	}
	return length
}

// repeats returns, for each character, how many characters starting there also occur
// starting at an earlier position. The two may overlap, as in abababab.
func repeats(text []rune) []int {
	longest := make([]int, len(text))
	next := make([]int, len(text)+1) // for i+1: the length of its match with the text from each earlier position
	for i := len(text) - 1; i >= 0; i-- {
		same := make([]int, len(text)+1)
		for at := range i {
			if text[at] == text[i] {
				same[at] = next[at+1] + 1
			}
			longest[i] = max(longest[i], same[at])
		}
		next = same
	}
	return longest
}

// walk is a sequence of neighbouring keys on a keyboard.
type walk struct {
	length int
	turns  []int // for each step, newest last: 1 where the direction changed
}

// turnsIn returns how often the walk changes direction in its last n keys.
func (w walk) turnsIn(n int) int {
	turns := 0
	for _, t := range w.turns[max(0, len(w.turns)-n+2):] {
		turns += t
	}
	return turns
}

// walks returns, for each character, the walk over the keyboard that ends with it.
func walks(text []rune) []walk {
	ends := make([]walk, len(text))
	var before [2]int
	for i, r := range text {
		ends[i] = walk{length: 1}
		if i == 0 {
			continue
		}
		step, ok := keyStep(text[i-1], r)
		if !ok {
			before = [2]int{}
			continue
		}
		turn := 0
		if step != before && ends[i-1].length > 1 {
			turn = 1
		}
		ends[i] = walk{ends[i-1].length + 1, append(slices.Clip(ends[i-1].turns), turn)}
		before = step
	}
	return ends
}

// keyStep returns the direction from one key to a neighbouring one, false if they are not
// neighbours.
func keyStep(from, to rune) (step [2]int, ok bool) {
	x, y, ok := key(from)
	if !ok {
		return step, false
	}
	toX, toY, ok := key(to)
	step = [2]int{toX - x, toY - y}
	return step, ok && step != [2]int{} && max(step[0], -step[0], step[1], -step[1]) == 1
}

// key returns a key's position on a QWERTY keyboard.
func key(r rune) (x, y int, ok bool) {
	for y, row := range [...]string{"1234567890-=", "qwertyuiop[]", "asdfghjkl;'", "zxcvbnm,./"} {
		if x := strings.IndexRune(row, r); x >= 0 {
			return x, y, true
		}
	}
	return 0, 0, false
}

// undisguise replaces digits and signs with the letters they stand for; one is the letter
// for 1.
func undisguise(text []rune, one rune) []rune {
	plain := slices.Clone(text)
	for i, r := range plain {
		switch r {
		case '4', '@':
			plain[i] = 'a'
		case '3':
			plain[i] = 'e'
		case '0':
			plain[i] = 'o'
		case '5', '$':
			plain[i] = 's'
		case '7', '+':
			plain[i] = 't'
		case '1', '!', '|':
			plain[i] = one
		}
	}
	return plain
}

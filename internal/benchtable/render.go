package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// render writes the rows as a Markdown table that is legible as it is.
func render(rows []row) string {
	cells := [][]string{{"what", "peer", "ours / peer's", "lowest to highest", "better"}}
	for _, r := range rows {
		better := "less"
		if r.more {
			better = "more"
		}
		cells = append(cells, []string{r.what, r.peer, fmt.Sprintf("%.2f", r.ratio), spread(r), better})
	}
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, line := range cells {
		for i, cell := range line {
			fmt.Fprintf(&b, "| %-*s ", widths[i], cell)
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, width := range widths {
				b.WriteString("|" + strings.Repeat("-", width+2))
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}

func spread(r row) string {
	if r.lowest == r.highest {
		return ""
	}
	return fmt.Sprintf("%.2f to %.2f", r.lowest, r.highest)
}

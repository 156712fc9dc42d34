package model

import "fmt"

// Count formats a number with its noun: "1 table", "2 tables".
func Count(n any, noun string) string {
	number := fmt.Sprint(n)
	if number != "1" {
		noun += "s"
	}
	return number + " " + noun
}

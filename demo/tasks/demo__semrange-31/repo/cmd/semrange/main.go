// Command semrange prints those of its arguments that are in a range, the latest first.
package main

import (
	"fmt"
	"os"

	"example.org/semrange"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: semrange RANGE VERSION...")
		os.Exit(2)
	}
	r, err := semrange.ParseRange(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var inside []semrange.Version
	for _, text := range os.Args[2:] {
		v, err := semrange.Parse(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if r.Contains(v) {
			inside = append(inside, v)
		}
	}
	semrange.Sort(inside)
	for i := len(inside) - 1; i >= 0; i-- {
		fmt.Println(inside[i])
	}
	if len(inside) == 0 {
		os.Exit(1)
	}
}

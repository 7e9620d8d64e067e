package semrange

import (
	"fmt"
	"strings"
)

// A bound is one comparison with a version.
type bound struct {
	op      string
	version Version
}

func (b bound) holds(v Version) bool {
	c := v.Compare(b.version)
	switch b.op {
	case "=":
		return c == 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	}
	panic("semrange: no such comparison: " + b.op)
}

// Range is a set of versions: any of several conjunctions of comparisons.
type Range struct {
	text   string
	either [][]bound
}

// ParseRange reads a range; the package's README has the grammar.
func ParseRange(text string) (Range, error) {
	r := Range{text: text}
	for _, part := range strings.Split(text, "||") {
		all, err := parseConjunction(strings.TrimSpace(part))
		if err != nil {
			return Range{}, fmt.Errorf("semrange: range %q: %w", text, err)
		}
		r.either = append(r.either, all)
	}
	return r, nil
}

// String returns the range as it was written.
func (r Range) String() string { return r.text }

// Contains says whether a version is in the range.
//
// A pre-release is in it only if one of the comparisons that it satisfies names a pre-release of the same
// three numbers: who asks for ^1.2.0 does not want 1.3.0-alpha.
func (r Range) Contains(v Version) bool {
	for _, all := range r.either {
		if containsAll(all, v) {
			return true
		}
	}
	return false
}

func containsAll(all []bound, v Version) bool {
	for _, b := range all {
		if !b.holds(v) {
			return false
		}
	}
	if !v.IsPre() {
		return true
	}
	for _, b := range all {
		w := b.version
		if w.IsPre() && w.Major == v.Major && w.Minor == v.Minor && w.Patch == v.Patch {
			return true
		}
	}
	return false
}

// Best returns the latest of the versions that are in the range.
func Best(r Range, versions []Version) (Version, bool) {
	var best Version
	found := false
	for _, v := range versions {
		if r.Contains(v) && (!found || best.Less(v)) {
			best, found = v, true
		}
	}
	return best, found
}

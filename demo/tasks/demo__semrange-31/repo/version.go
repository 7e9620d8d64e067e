// Package semrange reads semantic versions and ranges of them.
package semrange

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a semantic version. Build metadata is kept but never compared.
type Version struct {
	Major, Minor, Patch uint64
	Pre                 []string
	Build               string
}

// Parse reads a version such as 1.2.3-beta.4+build.5. A leading v is allowed.
func Parse(text string) (Version, error) {
	var v Version
	rest := strings.TrimPrefix(text, "v")
	if i := strings.IndexByte(rest, '+'); i >= 0 {
		rest, v.Build = rest[:i], rest[i+1:]
		if v.Build == "" {
			return Version{}, fmt.Errorf("semrange: %q: empty build metadata", text)
		}
	}
	if i := strings.IndexByte(rest, '-'); i >= 0 {
		v.Pre = strings.Split(rest[i+1:], ".")
		rest = rest[:i]
	}
	for _, id := range v.Pre {
		if err := checkIdentifier(id); err != nil {
			return Version{}, fmt.Errorf("semrange: %q: %w", text, err)
		}
	}
	numbers := strings.Split(rest, ".")
	if len(numbers) != 3 {
		return Version{}, fmt.Errorf("semrange: %q: want three numbers, got %d", text, len(numbers))
	}
	for i, target := range []*uint64{&v.Major, &v.Minor, &v.Patch} {
		n, err := parseNumber(numbers[i])
		if err != nil {
			return Version{}, fmt.Errorf("semrange: %q: %w", text, err)
		}
		*target = n
	}
	return v, nil
}

// MustParse is Parse for versions that are known to be right; it panics if they are not.
func MustParse(text string) Version {
	v, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return v
}

func parseNumber(text string) (uint64, error) {
	if len(text) > 1 && text[0] == '0' {
		return 0, fmt.Errorf("%q has a leading zero", text)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

func checkIdentifier(id string) error {
	if id == "" {
		return fmt.Errorf("empty pre-release identifier")
	}
	for _, r := range id {
		ok := r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !ok {
			return fmt.Errorf("%q is not a pre-release identifier", id)
		}
	}
	return nil
}

// String writes the version without a leading v.
func (v Version) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d.%d.%d", v.Major, v.Minor, v.Patch)
	if len(v.Pre) > 0 {
		b.WriteString("-" + strings.Join(v.Pre, "."))
	}
	if v.Build != "" {
		b.WriteString("+" + v.Build)
	}
	return b.String()
}

// IsPre says whether the version is a pre-release.
func (v Version) IsPre() bool { return len(v.Pre) > 0 }

package semrange

import (
	"fmt"
	"regexp"
	"strings"
)

// A partial is a version of which the last numbers may be missing or wild.
type partial struct {
	version Version
	given   int // how many of the three numbers were given
}

var (
	hyphen  = regexp.MustCompile(`^(\S+)\s+-\s+(\S+)$`)
	spaced  = regexp.MustCompile(`(>=|<=|[<>=~^])\s+`)
	leading = regexp.MustCompile(`^(>=|<=|[<>=~^])?(.*)$`)
)

func parseConjunction(text string) ([]bound, error) {
	if text == "" {
		return nil, fmt.Errorf("an alternative is empty")
	}
	if m := hyphen.FindStringSubmatch(text); m != nil {
		return parseHyphen(m[1], m[2])
	}
	var all []bound
	for _, word := range strings.Fields(spaced.ReplaceAllString(text, "$1")) {
		m := leading.FindStringSubmatch(word)
		p, err := parsePartial(m[2])
		if err != nil {
			return nil, err
		}
		all = append(all, bounds(m[1], p)...)
	}
	return all, nil
}

func parseHyphen(from, to string) ([]bound, error) {
	low, err := parsePartial(from)
	if err != nil {
		return nil, err
	}
	high, err := parsePartial(to)
	if err != nil {
		return nil, err
	}
	all := []bound{{">=", low.version}}
	if high.given == 3 {
		return append(all, bound{"<=", high.version}), nil
	}
	if high.given > 0 {
		all = append(all, bound{"<", next(high.version, high.given)})
	}
	return all, nil
}

func parsePartial(text string) (partial, error) {
	var p partial
	core := strings.TrimPrefix(text, "v")
	if strings.Count(core, ".") == 2 && !strings.ContainsAny(core, "xX*") || strings.Contains(core, "-") {
		v, err := Parse(core)
		return partial{v, 3}, err
	}
	wild := false
	for i, word := range strings.Split(core, ".") {
		if i > 2 {
			return p, fmt.Errorf("%q has more than three numbers", text)
		}
		if word == "x" || word == "X" || word == "*" {
			wild = true
			continue
		}
		n, err := parseNumber(word)
		if err != nil {
			return p, err
		}
		if wild {
			return p, fmt.Errorf("%q has a number after a wild one", text)
		}
		*[]*uint64{&p.version.Major, &p.version.Minor, &p.version.Patch}[i] = n
		p.given = i + 1
	}
	return p, nil
}

// bounds spells out what an operator means in front of a version.
func bounds(op string, p partial) []bound {
	if p.given == 0 && op != "<" && op != ">" {
		return []bound{{">=", Version{}}}
	}
	switch op {
	case "", "=":
		if p.given == 3 {
			return []bound{{"=", p.version}}
		}
		return []bound{{">=", p.version}, {"<", next(p.version, p.given)}}
	case "~":
		if p.given > 2 {
			return []bound{{">=", p.version}, {"<", next(p.version, 2)}}
		}
		return []bound{{">=", p.version}, {"<", next(p.version, p.given)}}
	case "^":
		return []bound{{">=", p.version}, {"<", next(p.version, 1)}}
	case ">":
		if p.given > 0 && p.given < 3 {
			return []bound{{">=", next(p.version, p.given)}}
		}
	case "<=":
		if p.given < 3 {
			return []bound{{"<", next(p.version, p.given)}}
		}
	}
	return []bound{{op, p.version}}
}

// next returns the first version that differs from v in one of its first n numbers.
func next(v Version, n int) Version {
	switch n {
	case 1:
		return Version{Major: v.Major + 1}
	case 2:
		return Version{Major: v.Major, Minor: v.Minor + 1}
	default:
		return Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch + 1}
	}
}

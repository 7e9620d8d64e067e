package semrange

import (
	"sort"
	"strconv"
	"strings"
)

// Compare returns -1, 0 or 1 as v comes before, is equal to, or comes after w.
func (v Version) Compare(w Version) int {
	for _, pair := range [][2]uint64{{v.Major, w.Major}, {v.Minor, w.Minor}, {v.Patch, w.Patch}} {
		if pair[0] != pair[1] {
			return sign(pair[0] > pair[1])
		}
	}
	return comparePre(v.Pre, w.Pre)
}

// Less says whether v comes before w.
func (v Version) Less(w Version) bool { return v.Compare(w) < 0 }

// Sort puts the earliest version first.
func Sort(versions []Version) {
	sort.SliceStable(versions, func(i, j int) bool { return versions[i].Less(versions[j]) })
}

func comparePre(a, b []string) int {
	switch {
	case len(a) == 0 && len(b) == 0:
		return 0
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	for i := 0; i < len(a) && i < len(b); i++ {
		if c := compareIdentifier(a[i], b[i]); c != 0 {
			return c
		}
	}
	if len(a) == len(b) {
		return 0
	}
	return sign(len(a) > len(b))
}

// Numbers come before words, numbers are compared as numbers.
func compareIdentifier(a, b string) int {
	m, errA := strconv.ParseUint(a, 10, 64)
	n, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		if m == n {
			return 0
		}
		return sign(m > n)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

func sign(after bool) int {
	if after {
		return 1
	}
	return -1
}

package semrange

import "testing"

type membership struct {
	in, out []string
}

func check(t *testing.T, text string, want membership) {
	t.Helper()
	r, err := ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range want.in {
		if !r.Contains(MustParse(v)) {
			t.Errorf("%s should contain %s", text, v)
		}
	}
	for _, v := range want.out {
		if r.Contains(MustParse(v)) {
			t.Errorf("%s should not contain %s", text, v)
		}
	}
}

func TestExact(t *testing.T) {
	check(t, "1.2.3", membership{in: []string{"1.2.3", "1.2.3+b"}, out: []string{"1.2.4", "1.2.3-a"}})
}

func TestComparisons(t *testing.T) {
	check(t, ">=1.2.3 <2", membership{in: []string{"1.2.3", "1.99.0"}, out: []string{"1.2.2", "2.0.0"}})
	check(t, ">1.2", membership{in: []string{"1.3.0"}, out: []string{"1.2.9"}})
	check(t, "<=1.2", membership{in: []string{"1.2.9"}, out: []string{"1.3.0"}})
	check(t, "> 1.0.0", membership{in: []string{"1.0.1"}, out: []string{"1.0.0"}})
}

func TestWild(t *testing.T) {
	check(t, "1.2.x", membership{in: []string{"1.2.0", "1.2.7"}, out: []string{"1.3.0", "1.1.9"}})
	check(t, "*", membership{in: []string{"0.0.0", "7.1.3"}})
	check(t, "2", membership{in: []string{"2.7.1"}, out: []string{"3.0.0", "1.9.9"}})
}

func TestTilde(t *testing.T) {
	check(t, "~1.2.3", membership{in: []string{"1.2.3", "1.2.9"}, out: []string{"1.3.0", "1.2.2"}})
	check(t, "~1", membership{in: []string{"1.9.0"}, out: []string{"2.0.0"}})
}

func TestCaret(t *testing.T) {
	check(t, "^1.2.3", membership{in: []string{"1.2.3", "1.9.9"}, out: []string{"2.0.0", "1.2.2"}})
	check(t, "^1", membership{in: []string{"1.0.0", "1.9.9"}, out: []string{"2.0.0", "0.9.9"}})
}

func TestHyphen(t *testing.T) {
	check(t, "1.2.3 - 2.3.4", membership{in: []string{"1.2.3", "2.3.4"}, out: []string{"2.3.5"}})
	check(t, "1.2 - 2.3", membership{in: []string{"1.2.0", "2.3.9"}, out: []string{"2.4.0"}})
}

func TestEither(t *testing.T) {
	check(t, "^1.4 || ~2.0.3", membership{in: []string{"1.5.0", "2.0.4"}, out: []string{"1.3.0", "2.1.0"}})
}

func TestPreReleases(t *testing.T) {
	check(t, "^1.2.0", membership{out: []string{"1.3.0-alpha"}})
	check(t, ">=1.3.0-alpha.2 <2", membership{in: []string{"1.3.0-alpha.3", "1.4.0"}, out: []string{"1.3.0-alpha.1", "1.4.0-beta"}})
}

func TestRangeRefuses(t *testing.T) {
	for _, text := range []string{"", "1 ||", ">x.1", "1.x.3", "^a", "1.2.3.4"} {
		if r, err := ParseRange(text); err == nil {
			t.Errorf("%q was read as %s", text, r)
		}
	}
}

func TestBest(t *testing.T) {
	r, _ := ParseRange("^1.2.0")
	best, ok := Best(r, []Version{MustParse("1.2.0"), MustParse("1.10.0"), MustParse("1.9.0"), MustParse("2.0.0")})
	if !ok || best.String() != "1.10.0" {
		t.Errorf("got %s, %v", best, ok)
	}
	if _, ok := Best(r, nil); ok {
		t.Error("found a version among none")
	}
}

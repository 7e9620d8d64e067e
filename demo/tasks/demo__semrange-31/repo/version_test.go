package semrange

import "testing"

func TestParseAndString(t *testing.T) {
	for _, text := range []string{"0.0.0", "1.2.3", "1.2.3-alpha.1", "1.2.3-x-y.7+b5"} {
		v, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if v.String() != text {
			t.Errorf("%s became %s", text, v)
		}
	}
	if MustParse("v1.2.3").String() != "1.2.3" {
		t.Error("a leading v is not taken off")
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.-3", "1.2.3-", "1.2.3-a..b", "1.2.3+", "a.b.c", "1.2.3-ä"} {
		if v, err := Parse(text); err == nil {
			t.Errorf("%q was read as %s", text, v)
		}
	}
}

// The order that semver.org gives, earliest first.
func TestPrecedence(t *testing.T) {
	order := []string{
		"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
		"1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0",
	}
	for i := range order {
		for j := range order {
			got := MustParse(order[i]).Compare(MustParse(order[j]))
			want := 0
			if i != j {
				want = sign(i > j)
			}
			if got != want {
				t.Errorf("%s against %s: %d", order[i], order[j], got)
			}
		}
	}
}

func TestBuildIsNotCompared(t *testing.T) {
	if MustParse("1.0.0+a").Compare(MustParse("1.0.0+b")) != 0 {
		t.Error("build metadata made a difference")
	}
}

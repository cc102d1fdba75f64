// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/weft-go/weft/kvhash/index"
)

// thompson is the router of NVIDIA's NeMo Agent Toolkit: Thompson sampling of a linear model and of a Beta distribution for each worker, with a
// bonus for the worker of the session and a factor for load. Without the hints that it expects, a session counts as one with reuse more
// requests, and lengths and pauses are medium.
type thompson struct {
	reuse   float64
	arms    map[index.Key]*arm
	running map[uint64]*trial
	mean    float64 // ms for each output token
}

// dims is the number of features.
const dims = 9

type features [dims]float64

// arm is what is known of one worker.
type arm struct {
	alpha, beta float64
	a           [dims][dims]float64 // lower triangle of a symmetric matrix
	b           features
	mean        float64 // ms for each output token
}

type trial struct {
	on    *arm
	x     features
	begun time.Time
}

func newThompson(o options) Policy {
	return &thompson{reuse: o.number("reuse", 10), arms: make(map[index.Key]*arm), running: make(map[uint64]*trial)}
}

func (*thompson) Name() string { return "thompson" }
func (*thompson) Terms() []Term {
	return []Term{{"score", "1"}, {"draw", "1"}}
}

func newArm() *arm {
	m := &arm{alpha: 1, beta: 1}
	for i := range dims {
		m.a[i][i] = 1
	}
	return m
}

// Constants of the toolkit: the factor of the pause between requests when it is medium, and that of exploration.
const (
	pauseFactor = 1.0
	explore     = 0.25
)

// features returns the inputs of the model for v.Workers[i], and the factor for its load.
func (p *thompson) features(v *View, r *Request, i int) (x features, load, overlap float64) {
	w := &v.Workers[i]
	reuse := 0.0
	if r.Intent.Session.ID != "" {
		reuse = p.reuse
	}
	_, _, cached, _ := v.Estimate(r, i)
	tokens := float64(max(r.Tokens, 1))
	overlap = float64(cached) / tokens
	used := w.KV
	if w.Engine.Capacity > 0 {
		used = max(used, float64(w.Load.Blocks)/float64(w.Engine.Capacity))
	}
	queue := float64(w.Load.Prefills)
	output := 2.0
	if n := r.Intent.ExpectedOutput; n > 0 {
		output = 1 + math.Floor(min(2, float64(n)/256))
	}
	prefill := tokens * (1 - overlap) / 1024
	work := float64(w.Load.Tokens)/1024 + 2*float64(w.Load.Decodes)
	last := 0.0
	if v.Session == i {
		last = 1
	}
	x = features{1, 1 / (1 + used + 0.5*queue), overlap, last, math.Tanh(0.1 * work), output / 3, math.Tanh(prefill), pauseFactor / 1.5, math.Tanh(0.25 * reuse)}
	job := prefill + output
	load = 1 / (1 + used + 0.5*queue + 0.45*work + 0.40*job*used + 0.20*job*queue)
	return x, load, overlap
}

func (p *thompson) Costs(v *View, r *Request, out []Terms) {
	reuse := 0.0
	if r.Intent.Session.ID != "" {
		reuse = p.reuse
	}
	temperature := min(max(1/(1+reuse*pauseFactor), 0.15), 2)
	for i := range v.Workers {
		x, load, overlap := p.features(v, r, i)
		m := p.arms[v.Workers[i].Key]
		if m == nil {
			m = newArm()
		}
		draw := random64{v.Turn, uint64(i) << 8}
		score := m.sample(&x, &draw) + 0.10/(1+reuse*pauseFactor)*draw.beta(m.alpha, m.beta)
		switch {
		case v.Session == i && reuse > 0:
			score += (0.30 + 0.15*reuse + 0.20*pauseFactor) * (0.5 + 0.5*overlap)
		case v.Session >= 0:
			score -= 0.20 + 0.08*reuse + 0.05*pauseFactor
		}
		if v.Session == i {
			load = max(load, 0.01)
		}
		out[i][0] = -score * load
		out[i][1] = -temperature * gumbel(v.Turn, uint64(i)<<8|255)
	}
}

func (p *thompson) Placed(v *View, r *Request, i int) {
	key := v.Workers[i].Key
	m := p.arms[key]
	if m == nil {
		m = newArm()
		forgetGone(p.arms, v)
		p.arms[key] = m
	}
	x, _, _ := p.features(v, r, i)
	p.running[v.Turn] = &trial{m, x, v.Now}
}

func (p *thompson) FirstToken(uint64, time.Time) {}

func (p *thompson) Ended(turn uint64, now time.Time, _, output int) {
	t := p.running[turn]
	if delete(p.running, turn); t == nil {
		return
	}
	reward := 0.0
	if output >= 0 {
		each := ms(now.Sub(t.begun)) / float64(max(output, 1))
		mean := t.on.mean
		if mean == 0 {
			mean = p.mean
		}
		reward = 0.5
		if mean > 0 {
			reward = 1 / (1 + each/mean)
		}
		t.on.mean = average(t.on.mean, each)
		p.mean = average(p.mean, each)
	}
	t.on.alpha, t.on.beta = t.on.alpha+reward, t.on.beta+1-reward
	t.on.learn(&t.x, reward)
}

func average(mean, x float64) float64 {
	if mean == 0 {
		return x
	}
	return mean + 0.2*(x-mean)
}

// learn adds an observation, and forgets a little of the earlier ones.
func (m *arm) learn(x *features, reward float64) {
	const keep = 0.995
	for i := range dims {
		for k := range i + 1 {
			m.a[i][k] = keep*m.a[i][k] + x[i]*x[k]
		}
		m.a[i][i] += 1 - keep
		m.b[i] = keep*m.b[i] + reward*x[i]
	}
}

// sample returns the product of x with parameters that are drawn from what is known.
func (m *arm) sample(x *features, draw *random64) float64 {
	var l [dims][dims]float64 // a = l·lᵀ
	for i := range dims {
		for k := range i + 1 {
			s := m.a[i][k]
			for j := range k {
				s -= l[i][j] * l[k][j]
			}
			if i == k {
				l[i][i] = math.Sqrt(max(s, 1e-9))
			} else {
				l[i][k] = s / l[k][k]
			}
		}
	}
	// With y = l⁻¹·x, the product has the mean y·l⁻¹·b and the variance y·y.
	var y, z features
	var mean, variance float64
	for i := range dims {
		y[i], z[i] = x[i], m.b[i]
		for k := range i {
			y[i] -= l[i][k] * y[k]
			z[i] -= l[i][k] * z[k]
		}
		y[i], z[i] = y[i]/l[i][i], z[i]/l[i][i]
		mean += y[i] * z[i]
		variance += y[i] * y[i]
	}
	return mean + explore*math.Sqrt(variance)*draw.normal()
}

// random64 is a sequence of numbers that look random.
type random64 struct{ seed, next uint64 }

func (d *random64) unit() float64 {
	d.next++
	return max(unit(d.seed, d.next), 1e-300)
}

func (d *random64) normal() float64 {
	return math.Sqrt(-2*math.Log(d.unit())) * math.Cos(2*math.Pi*d.unit())
}

// beta draws from a Beta distribution with parameters of at least 1.
func (d *random64) beta(a, b float64) float64 {
	x, y := d.gamma(a), d.gamma(b)
	return x / (x + y)
}

// gamma draws from a Gamma distribution with a shape of at least 1, by the method of Marsaglia and Tsang.
func (d *random64) gamma(shape float64) float64 {
	s := shape - 1.0/3
	c := 1 / math.Sqrt(9*s)
	for range 32 {
		x := d.normal()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(d.unit()) < 0.5*x*x+s-s*v+s*math.Log(v) {
			return s * v
		}
	}
	return shape
}

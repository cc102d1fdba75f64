// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/replay"
)

// tenantConfig is a tenant. A request belongs to it if it contains one of the keys, as a bearer token or in x-api-key.
type tenantConfig struct {
	Name   string       `yaml:"name"`
	Keys   []string     `yaml:"keys"`
	Policy policyConfig `yaml:"policy"`
	Limits limitsConfig `yaml:"limits"` // of each key
}

// limitsConfig holds the limits of a serve.Key.
type limitsConfig struct {
	RequestsPerMinute int `yaml:"requests_per_minute"` // 0 means no limit
	TokensPerMinute   int `yaml:"tokens_per_minute"`   // 0 means no limit
	Concurrent        int `yaml:"concurrent"`          // 0 means 128, -1 no limit
}

// key returns a key with the limits.
func (c *limitsConfig) key(secret, name, tenant string) serve.Key {
	return serve.Key{
		Secret: secret, Name: name, Tenant: tenant,
		RequestsPerMinute: c.RequestsPerMinute, TokensPerMinute: c.TokensPerMinute, Concurrent: c.Concurrent,
	}
}

// policyConfig is an intent.Policy.
type policyConfig struct {
	Trust          []string      `yaml:"trust"` // guarded hints to accept: tier, objective, tenant, evict, final, pin, meta; salt: accept it unchanged
	Deny           []string      `yaml:"deny"`
	MaxPriority    int32         `yaml:"max_priority"`
	MinPriority    int32         `yaml:"min_priority"`
	MaxTier        uint32        `yaml:"max_tier"`
	MaxOutput      int           `yaml:"max_output"`
	MaxTTL         time.Duration `yaml:"max_ttl"` // 0 means 1h; if negative, retention hints are dropped
	MaxBreakpoints int           `yaml:"max_breakpoints"`
	MinTTFT        time.Duration `yaml:"min_ttft"`
	MinITL         time.Duration `yaml:"min_itl"`
	MinDeadline    time.Duration `yaml:"min_deadline"`
	Prefetch       bool          `yaml:"prefetch"`
	// Isolate gives the tenant its own cache: true by default for tenants, and false for requests without a tenant.
	Isolate *bool `yaml:"isolate"`
}

func (c *policyConfig) policy() (intent.Policy, error) {
	trust, err := intent.ParseHints(c.Trust...)
	if err != nil {
		return intent.Policy{}, fmt.Errorf("policy: trust: %w", err)
	}
	deny, err := intent.ParseHints(c.Deny...)
	if err != nil {
		return intent.Policy{}, fmt.Errorf("policy: deny: %w", err)
	}
	return intent.Policy{
		Trust: trust, Deny: deny, MaxPriority: c.MaxPriority, MinPriority: c.MinPriority,
		MaxTier: c.MaxTier, MaxOutput: c.MaxOutput, MaxTTL: c.MaxTTL, MaxBreakpoints: c.MaxBreakpoints, MinTTFT: c.MinTTFT,
		MinITL: c.MinITL, MinDeadline: c.MinDeadline, Prefetch: c.Prefetch, Isolate: c.Isolate != nil && *c.Isolate,
	}, nil
}

// access holds the policies of tenants and the keys of all clients.
type access struct {
	policies map[string]intent.Policy
	shared   map[string]bool
	keys     []serve.Key
}

// tenants returns the policies and keys of the tenants.
func tenants(c *config) (*access, error) {
	a := &access{policies: map[string]intent.Policy{}, shared: map[string]bool{}}
	of := map[string]string{}
	for i, t := range c.Tenants {
		if t.Name == "" {
			return nil, fmt.Errorf("config: tenant %d has no name", i+1)
		}
		if _, ok := a.policies[t.Name]; ok {
			return nil, fmt.Errorf("config: duplicate tenant %q", t.Name)
		}
		policy, err := t.Policy.policy()
		if err != nil {
			return nil, fmt.Errorf("config: tenant %q: %w", t.Name, err)
		}
		if l := &t.Limits; l.RequestsPerMinute < 0 || l.TokensPerMinute < 0 || l.Concurrent < -1 {
			return nil, fmt.Errorf("config: tenant %q: limits must not be negative, except concurrent: -1", t.Name)
		}
		a.policies[t.Name] = policy
		a.shared[t.Name] = t.Policy.Isolate != nil && !*t.Policy.Isolate
		for k, key := range t.Keys {
			if key == "" {
				return nil, fmt.Errorf("config: tenant %q: key %d is empty", t.Name, k+1)
			}
			if other, ok := of[key]; ok {
				return nil, fmt.Errorf("config: tenant %q: key %d is also a key of tenant %q", t.Name, k+1, other)
			}
			of[key] = t.Name
			a.keys = append(a.keys, t.Limits.key(key, "", t.Name))
		}
	}
	return a, nil
}

// addFile adds the keys of a file. A line holds a key, or a name and a key. Blank lines and lines that begin with # are
// ignored.
func (a *access) addFile(file string, limits *limitsConfig) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		if n++; strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		switch f := strings.Fields(line); len(f) {
		case 0:
		case 1:
			a.keys = append(a.keys, limits.key(f[0], fmt.Sprintf("line %d", n), ""))
		case 2:
			a.keys = append(a.keys, limits.key(f[1], f[0], ""))
		default:
			return fmt.Errorf("%s: line %d: want a key, or a name and a key (got %d words)", file, n, len(f))
		}
	}
	if len(a.keys) == 0 {
		return fmt.Errorf("%s: no keys", file)
	}
	return nil
}

// signer returns a signer for hex keys separated by commas, or with a random key if keys is blank. The first key signs
// and verifies; the others only verify.
func signer(keys string) (*replay.Signer, error) {
	if strings.TrimSpace(keys) == "" {
		key := make([]byte, replay.KeySize)
		rand.Read(key)
		return replay.NewSigner(key, nil)
	}
	var list [][]byte
	for s := range strings.SplitSeq(keys, ",") {
		key, err := hex.DecodeString(strings.TrimSpace(s))
		if err != nil {
			return nil, errors.New("WEFT_REASONING_KEY: invalid hex") // err would print part of the key
		}
		list = append(list, key)
	}
	c, err := replay.NewSigner(list[0], &replay.SignerOptions{Old: list[1:]})
	if err != nil {
		return nil, fmt.Errorf("WEFT_REASONING_KEY: %w", err)
	}
	return c, nil
}

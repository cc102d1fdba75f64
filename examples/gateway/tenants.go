// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/replay"
)

// tenantConfig is a tenant. A request belongs to it if it contains one of the keys, as a bearer token or in x-api-key.
type tenantConfig struct {
	Name   string       `yaml:"name"`
	Keys   []string     `yaml:"keys"`
	Policy policyConfig `yaml:"policy"`
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
	Isolate        bool          `yaml:"isolate"` // give the tenant its own cache
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
		MinITL: c.MinITL, MinDeadline: c.MinDeadline, Prefetch: c.Prefetch, Isolate: c.Isolate,
	}, nil
}

// tenants returns the policy of each tenant, and a function that returns the tenant of a request, or "".
func tenants(c *config) (map[string]intent.Policy, func(*http.Request) string, error) {
	policies := map[string]intent.Policy{}
	byKey := map[[sha256.Size]byte]string{} // by hash, so that lookup times reveal nothing about keys
	for i, t := range c.Tenants {
		if t.Name == "" {
			return nil, nil, fmt.Errorf("config: tenant %d has no name", i+1)
		}
		if _, ok := policies[t.Name]; ok {
			return nil, nil, fmt.Errorf("config: duplicate tenant %q", t.Name)
		}
		policy, err := t.Policy.policy()
		if err != nil {
			return nil, nil, fmt.Errorf("config: tenant %q: %w", t.Name, err)
		}
		policies[t.Name] = policy
		for k, key := range t.Keys {
			if key == "" {
				return nil, nil, fmt.Errorf("config: tenant %q: key %d is empty", t.Name, k+1)
			}
			sum := sha256.Sum256([]byte(key))
			if of, ok := byKey[sum]; ok {
				return nil, nil, fmt.Errorf("config: tenant %q: key %d is also a key of tenant %q", t.Name, k+1, of)
			}
			byKey[sum] = t.Name
		}
	}
	return policies, func(r *http.Request) string {
		scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			key = r.Header.Get("X-Api-Key")
		}
		return byKey[sha256.Sum256([]byte(strings.TrimSpace(key)))]
	}, nil
}

// signer returns a signer for hex keys separated by commas, or nil if keys is blank. The first key signs and verifies;
// the others only verify.
func signer(keys string) (*replay.Signer, error) {
	if strings.TrimSpace(keys) == "" {
		return nil, nil
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

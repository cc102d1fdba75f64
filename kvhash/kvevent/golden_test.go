// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// golden reads a file of the test data, or skips.
func golden(t *testing.T, name string, to any) {
	t.Helper()
	root := os.Getenv("WEFT_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	b, err := os.ReadFile(filepath.Join(root, "kv", "golden", name))
	if err != nil {
		t.Skipf("test data not there: %v (set WEFT_SHARED)", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	require.NoError(t, d.Decode(to))
}

type goldenBatch struct {
	Name    string
	Payload string `json:"payload_hex"`
	Decoded []any
}

// want returns the expected batch of a payload, according to the file. It knows the names of the fields, not how they
// are written.
func (g *goldenBatch) want(t *testing.T, format kvevent.Format) kvevent.Batch {
	number := func(v any) int64 {
		n, err := v.(json.Number).Int64()
		require.NoError(t, err)
		return n
	}
	hash := func(v any) uint64 {
		switch v := v.(type) {
		case string:
			n, err := strconv.ParseUint(v, 10, 64)
			require.NoError(t, err)
			return n
		case map[string]any:
			b, err := hex.DecodeString(v["bin_hex"].(string))
			require.NoError(t, err)
			if format == kvevent.SGLang {
				return binary.BigEndian.Uint64(b)
			}
			return binary.BigEndian.Uint64(b[len(b)-8:])
		}
		return uint64(number(v))
	}
	var b kvevent.Batch
	ts, err := g.Decoded[0].(json.Number).Float64()
	require.NoError(t, err)
	b.Time = time.UnixMilli(int64(ts * 1000)).UTC()
	if len(g.Decoded) > 2 && g.Decoded[2] != nil {
		b.DPRank = uint32(number(g.Decoded[2]))
	}
	for _, ev := range g.Decoded[1].([]any) {
		f, ok := ev.(map[string]any)
		if !ok {
			names := []string{"type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys",
				"group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window", "locality", "ownership"}
			list := ev.([]any)
			if list[0] == "BlockRemoved" {
				names = []string{"type", "block_hashes", "medium", "group_idx"}
			}
			f = map[string]any{}
			for i, v := range list {
				f[names[i]] = v
			}
		}
		e := kvevent.Event{Kind: map[any]kvevent.Kind{"BlockStored": kvevent.Stored, "BlockRemoved": kvevent.Removed, "AllBlocksCleared": kvevent.Cleared}[f["type"]]}
		for k, v := range f {
			if v == nil {
				continue
			}
			switch k {
			case "block_hashes":
				for _, h := range v.([]any) {
					e.BlockHashes = append(e.BlockHashes, hash(h))
				}
			case "parent_block_hash":
				e.Parent, e.HasParent = hash(v), true
			case "token_ids":
				for _, id := range v.([]any) {
					e.TokenIDs = append(e.TokenIDs, uint32(number(id)))
				}
			case "block_size":
				e.BlockSize = int32(number(v))
			case "medium":
				e.Tier = map[any]kvevent.Tier{"GPU": kvevent.Device, "CPU": kvevent.Host}[v]
			case "lora_name":
				e.LoRA = v.(string)
			case "extra_keys":
				for _, key := range v.([]any)[0].([]any) {
					if key != f["lora_name"] {
						e.Namespace = key.(string)
					}
				}
			case "group_idx":
				e.Group = int32(number(v))
			case "kv_cache_spec_kind":
				require.Equal(t, "full_attention", v)
			case "ownership":
				e.Owner = v.(string)
			case "locality", "lora_id", "session_id", "type":
			default:
				t.Fatalf("field %s is not checked", k)
			}
		}
		if f["locality"] == "REMOTE" {
			e.Tier = kvevent.Remote
		}
		e.RootNamespace = format == kvevent.VLLM && e.Kind == kvevent.Stored && (e.HasParent || e.Namespace != "")
		b.Events = append(b.Events, e)
	}
	return b
}

func (g *goldenBatch) check(t *testing.T, format kvevent.Format) {
	payload, err := hex.DecodeString(g.Payload)
	require.NoError(t, err)
	d := kvevent.NewDecoder(format, nil)
	got, err := d.Append(nil, payload)
	require.NoError(t, err)
	if diff := cmp.Diff([]kvevent.Batch{g.want(t, format)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c := d.Tally()
	require.Zero(t, c.Malformed+c.Unknown+c.Elsewhere+c.Partial+c.Fields+c.Damaged)
	for n := range payload {
		_, err := d.Append(nil, payload[:n])
		require.Error(t, err)
	}
}

// Every payload of the file decodes to the batch given there.
func TestGoldenPayloads(t *testing.T) {
	var file struct{ Cases []goldenBatch }
	golden(t, "event_wire.json", &file)
	require.Len(t, file.Cases, 16)
	for _, g := range file.Cases {
		t.Run(g.Name, func(t *testing.T) {
			format := kvevent.VLLM
			if strings.HasPrefix(g.Name, "sglang") {
				format = kvevent.SGLang
			}
			g.check(t, format)
		})
	}
}

// Both captured files decode: arrays of batches, each as an array of bytes.
func TestGoldenCaptures(t *testing.T) {
	var file map[string]struct{ Batches []goldenBatch }
	golden(t, "captures_decoded.json", &file)
	require.Len(t, file, 2)
	for name, f := range file {
		require.Len(t, f.Batches, 3)
		for _, g := range f.Batches {
			t.Run(name, func(t *testing.T) {
				g.check(t, kvevent.VLLM)
				g.check(t, kvevent.SGLang)
			})
		}
	}
}

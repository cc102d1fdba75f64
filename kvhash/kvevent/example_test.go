// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"errors"
	"fmt"
	"io"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// A message of vLLM: three frames, of which the last is msgpack.
func ExampleDecoder() {
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	payload := "\x93\xcb\x40\x8f\x40\x00\x00\x00\x00\x00\x91\x95\xabBlockStored\x91\x01\xc0\x94\x0a\x14\x1e\x28\x04\x00"
	frames := [][]byte{[]byte("kv-events"), {0, 0, 0, 0, 0, 0, 0, 5}, []byte(payload)}

	batches, err := d.AppendFrames(nil, frames)
	for _, b := range batches {
		for _, e := range b.Events {
			fmt.Println(b.Seq, e.Kind, e.BlockHashes, e.TokenIDs, err)
		}
	}
	// Output:
	// 5 stored [1] [10 20 30 40] <nil>
}

// The topic of llm-d's engines has the pod and the model, and an event the fields that Event does not have.
func ExampleDecoder_Field() {
	d := kvevent.NewDecoder(kvevent.VLLM, &kvevent.DecoderOptions{TextOnly: true})
	payload := "\x93\xcb\x40\x8f\x40\x00\x00\x00\x00\x00\x91\x97\xabBlockStored\x91\x01\xc0\x94\x0a\x14\x1e\x28\x04\x07\xa3GPU\x00"
	batches, err := d.AppendFrames(nil, [][]byte{[]byte("kv@pod-1@model"), {0, 0, 0, 0, 0, 0, 0, 5}, []byte(payload)})

	fmt.Println(d.Topic(), batches[0].Events[0].LoRA, err)
	for _, name := range []string{"lora_id", "medium", "session_id"} {
		value, ok := d.Field(0, 0, name)
		fmt.Println(name, value, ok)
	}
	// Output:
	// kv@pod-1@model #7 <nil>
	// lora_id 7 true
	// medium GPU true
	// session_id <nil> false
}

// Another router gets the names of the blocks only.
func ExampleAppendBatch() {
	seq := []uint64{9143094415614847814, 9510318385840434533, 16998148715716822651}
	b := kvevent.Batch{Seq: 6, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Device, BlockHashes: seq, SequenceHashes: seq}}}
	packed := kvevent.AppendBatch(nil, &b)

	batches, err := kvevent.NewDecoder(kvevent.Compact, nil).Append(nil, packed)
	fmt.Println(len(packed), batches[0].Seq, batches[0].Events[0].SequenceHashes[2], err)
	// Output:
	// 33 6 16998148715716822651 <nil>
}

// A payload that ends too early: what was read before is in a damaged batch.
func ExampleDecodeError() {
	d := kvevent.NewDecoder(kvevent.SGLang, &kvevent.DecoderOptions{MaxTokens: 1 << 20})
	payload := "\x93\xcb\x40\x8f\x40\x00\x00\x00\x00\x00\x92\x91\xb0AllBlocksCleared\x95\xabBlockStored\x91\x01"

	batches, err := d.Append(nil, []byte(payload))
	for _, b := range batches {
		fmt.Println(len(b.Events), b.Events[0].Kind, "damaged:", b.Damaged)
	}
	if e, ok := errors.AsType[*kvevent.DecodeError](err); ok {
		fmt.Println(e.Offset, errors.Is(e, io.ErrUnexpectedEOF), errors.Is(e, kvevent.ErrLimit))
	}
	fmt.Println(len(batches), "batch,", d.Skipped(), "events skipped")
	// Output:
	// 1 cleared damaged: true
	// 44 true false
	// 1 batch, 0 events skipped
}

// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"fmt"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/messages"
)

func ExampleAppendError() {
	e := apierr.Overloaded(0)
	fmt.Println(messages.ErrorStatus(e))
	fmt.Printf("%s\n", messages.AppendError(nil, e, "req_7"))
	// Output:
	// 529
	// {"type":"error","error":{"type":"overloaded_error","message":"The server is overloaded. Please try again later."},"request_id":"req_7"}
}

func ExampleStream_Fail() {
	s := messages.NewStream(messages.StreamOptions{ID: "msg_1", Model: "demo"})
	fmt.Printf("%s", s.Fail(nil, apierr.EngineFailed(nil)))
	// Output:
	// event: error
	// data: {"type":"error","error":{"type":"api_error","message":"Server error: the engine failed while it was answering."}}
}

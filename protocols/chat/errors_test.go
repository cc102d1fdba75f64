// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"fmt"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/chat"
)

func ExampleAppendError() {
	e := apierr.TooLarge(64 << 20)
	fmt.Println(chat.ErrorStatus(e))
	fmt.Printf("%s\n", chat.AppendError(nil, e))
	// Output:
	// 413
	// {"error":{"message":"The body of your request exceeds the maximum of 67108864 bytes.","type":"invalid_request_error","param":null,"code":"request_too_large"}}
}

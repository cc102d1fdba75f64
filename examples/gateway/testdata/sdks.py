# SPDX-License-Identifier: Apache-2.0

"""Talks to the gateway with the SDKs of OpenAI and Anthropic and prints what they understood, as JSON, a line per step."""

import json

import anthropic
import openai

chat, claude = openai.OpenAI(max_retries=0), anthropic.Anthropic(max_retries=0)
QUESTION, RESULT = "What is the weather in Oslo?", "sunny"
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def show(step, *seen):
    print(json.dumps([step, *seen]))


# Chat: a call in a stream, its result, and an error.
tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
messages = [{"role": "user", "content": QUESTION}]
with chat.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
    for _ in stream:
        pass
    choice = stream.get_final_completion().choices[0]
call = choice.message.tool_calls[0]
show("chat", choice.message.content, call.function.name, json.loads(call.function.arguments), choice.finish_reason)
messages += [choice.message.model_dump(exclude_none=True, exclude={"parsed"}), {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
show("chat result", chat.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message.content)
try:
    chat.chat.completions.create(model="m", messages=[])
except openai.BadRequestError as e:
    show("chat error", e.status_code, e.param)

# Responses: the same, with stored responses.
tools = [{"type": "function", "name": "weather", "parameters": schema, "strict": False}]
with chat.responses.stream(model="m", input=QUESTION, tools=tools) as stream:
    for _ in stream:
        pass
    first = stream.get_final_response()
call = next(o for o in first.output if o.type == "function_call")
show("responses", first.output_text, call.name, json.loads(call.arguments), first.status)
result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
second = chat.responses.create(model="m", previous_response_id=first.id, input=[result], tools=tools)
show("responses result", second.output_text)
show("retrieve", chat.responses.retrieve(second.id).output_text)
show("input items", [i.type for i in chat.responses.input_items.list(second.id, order="asc", limit=2)])
chat.responses.delete(second.id)
try:
    chat.responses.retrieve(second.id)
except openai.NotFoundError as e:
    show("deleted", e.status_code)

# Responses over WebSocket: a warm-up, and a response that continues it.
with chat.responses.connect() as connection:
    def ask(**fields):
        connection.send({"type": "response.create", "model": "m", "store": False, **fields})
        for event in connection:
            if event.type == "response.completed":
                return event.response
            if event.type == "error":
                return event

    warm = ask(generate=False, input=[], tools=tools)
    show("warm-up", warm.output)
    first = ask(previous_response_id=warm.id, input=QUESTION, tools=tools)
    call = next(o for o in first.output if o.type == "function_call")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    show("socket", ask(previous_response_id=first.id, input=[result], tools=tools).output_text)
    show("socket error", ask(previous_response_id="resp_none", input="x").error.code)

# Messages, in the version of the SDK and the one before, which has sampling.
tools = [{"name": "weather", "input_schema": schema}]
for version in ({}, {"extra_headers": {"anthropic-version": "2023-06-01"}, "extra_body": {"temperature": 0.5}}):
    messages = [{"role": "user", "content": QUESTION}]
    with claude.messages.stream(model="m", max_tokens=500, messages=messages, tools=tools, **version) as stream:
        message = stream.get_final_message()
    text = next(b.text for b in message.content if b.type == "text")
    call = next(b for b in message.content if b.type == "tool_use")
    show("messages", text, call.name, call.input, message.stop_reason)
    messages += [{"role": "assistant", "content": [b.model_dump(exclude_none=True, exclude={"parsed_output"}) for b in message.content]},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": RESULT}]}]
    show("messages result", claude.messages.create(model="m", max_tokens=500, messages=messages, tools=tools, **version).content[-1].text)
count = claude.messages.count_tokens(model="m", messages=messages, tools=tools).input_tokens
show("count", count > 10)
try:
    claude.messages.create(model="m", max_tokens=-1, messages=messages)
except anthropic.BadRequestError as e:
    show("messages error", e.status_code, e.body["error"]["type"])
show("models", [m.id for m in chat.models.list()], [m.id for m in claude.models.list()])

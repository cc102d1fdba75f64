// SPDX-License-Identifier: Apache-2.0

// Does what sdks.py does, with the SDKs for TypeScript.
import { createRequire } from "node:module";

const require = createRequire(process.argv[2] + "/");
const { default: OpenAI } = require("openai");
const { ResponsesWS } = require("openai/resources/responses/ws");
const { default: Anthropic } = require("@anthropic-ai/sdk");

const chat = new OpenAI({ maxRetries: 0 });
const claude = new Anthropic({ maxRetries: 0 });
const QUESTION = "What is the weather in Oslo?";
const RESULT = "sunny";
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const show = (...seen) => console.log(JSON.stringify(seen));
const failure = async (promise) => {
  try {
    await promise;
  } catch (e) {
    return e;
  }
};

{
  const tools = [{ type: "function", function: { name: "weather", parameters: schema } }];
  const messages = [{ role: "user", content: QUESTION }];
  const choice = (await chat.chat.completions.stream({ model: "m", messages, tools }).finalChatCompletion()).choices[0];
  const call = choice.message.tool_calls[0];
  show("chat", choice.message.content, call.function.name, JSON.parse(call.function.arguments), choice.finish_reason);
  messages.push(choice.message, { role: "tool", tool_call_id: call.id, content: RESULT });
  show("chat result", (await chat.chat.completions.create({ model: "m", messages, tools })).choices[0].message.content);
  const e = await failure(chat.chat.completions.create({ model: "m", messages: [] }));
  if (e instanceof OpenAI.BadRequestError) show("chat error", e.status, e.param);
}

const tools = [{ type: "function", name: "weather", parameters: schema, strict: false }];
{
  const first = await chat.responses.stream({ model: "m", input: QUESTION, tools }).finalResponse();
  const call = first.output.find((o) => o.type === "function_call");
  show("responses", first.output_text, call.name, JSON.parse(call.arguments), first.status);
  const result = { type: "function_call_output", call_id: call.call_id, output: RESULT };
  const second = await chat.responses.create({ model: "m", previous_response_id: first.id, input: [result], tools });
  show("responses result", second.output_text);
  show("retrieve", (await chat.responses.retrieve(second.id)).output_text);
  const types = [];
  for await (const item of chat.responses.inputItems.list(second.id, { order: "asc", limit: 2 })) types.push(item.type);
  show("input items", types);
  await chat.responses.delete(second.id);
  const e = await failure(chat.responses.retrieve(second.id));
  if (e instanceof OpenAI.NotFoundError) show("deleted", e.status);
}
{
  const socket = new ResponsesWS(chat);
  const events = socket.stream()[Symbol.asyncIterator]();
  const ask = async (fields) => {
    socket.send({ type: "response.create", model: "m", store: false, ...fields });
    for (;;) {
      const event = (await events.next()).value;
      if (event.type === "error") return event.error;
      if (event.type === "message" && event.message.type === "response.completed") return event.message.response;
    }
  };
  const warm = await ask({ generate: false, input: [], tools });
  show("warm-up", warm.output);
  const first = await ask({ previous_response_id: warm.id, input: QUESTION, tools });
  const call = first.output.find((o) => o.type === "function_call");
  const result = { type: "function_call_output", call_id: call.call_id, output: RESULT };
  const second = await ask({ previous_response_id: first.id, input: [result], tools });
  show("socket", second.output.find((o) => o.type === "message").content[0].text);
  show("socket error", (await ask({ previous_response_id: "resp_none", input: "x" })).error.error.code);
  socket.close();
}
{
  const tools = [{ name: "weather", input_schema: schema }];
  let messages;
  for (const [more, headers] of [[{}, {}], [{ temperature: 0.5 }, { "anthropic-version": "2023-06-01" }]]) {
    messages = [{ role: "user", content: QUESTION }];
    const message = await claude.messages.stream({ model: "m", max_tokens: 500, messages, tools, ...more }, { headers }).finalMessage();
    const call = message.content.find((b) => b.type === "tool_use");
    show("messages", message.content.find((b) => b.type === "text").text, call.name, call.input, message.stop_reason);
    messages.push({ role: "assistant", content: message.content }, { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: RESULT }] });
    show("messages result", (await claude.messages.create({ model: "m", max_tokens: 500, messages, tools, ...more }, { headers })).content.at(-1).text);
  }
  show("count", (await claude.messages.countTokens({ model: "m", messages, tools })).input_tokens > 10);
  const e = await failure(claude.messages.create({ model: "m", max_tokens: -1, messages }));
  if (e instanceof Anthropic.BadRequestError) show("messages error", e.status, e.error.error.type);
}
const [ids, others] = [[], []];
for await (const m of chat.models.list()) ids.push(m.id);
for await (const m of claude.models.list()) others.push(m.id);
show("models", ids, others);

// SPDX-License-Identifier: Apache-2.0

// A server of the Model Context Protocol with three tools, which write notes to the file in its argument.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const tools = ["alpha", "beta", "gamma"].map((name) => ({
  name: `note_${name}`,
  description: `Takes a note about ${name}`,
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
}));

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  let result = {};
  if (method === "initialize") {
    result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "notes", version: "1" } };
  } else if (method === "tools/list") {
    result = { tools };
  } else if (method === "tools/call") {
    appendFileSync(process.argv[2], `${params.name} ${params.arguments.text}\n`);
    result = { content: [{ type: "text", text: "noted" }] };
  }
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n");
}

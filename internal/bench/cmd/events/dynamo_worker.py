# SPDX-License-Identifier: Apache-2.0
"""A worker of Dynamo whose tokens come from an engine with vLLM's /v1/completions: dynamo_worker.py MODEL_DIR ENGINE"""
import asyncio
import json
import sys

import aiohttp
import uvloop
from dynamo.common.utils.runtime import create_runtime
from dynamo.llm import ModelInput, ModelRuntimeConfig, ModelType, WorkerType, register_model


async def main():
    folder, engine = sys.argv[1:]
    runtime, _ = create_runtime("file", "tcp", "zmq")
    endpoint = runtime.endpoint("dynamo.events.generate")
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))

    async def generate(request, context):
        async with session.post(engine + "/v1/completions", json={"stream": True, "return_token_ids": True}) as response:
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                for choice in json.loads(line[6:])["choices"]:
                    chunk = {"token_ids": choice["token_ids"]}
                    if choice["finish_reason"]:
                        chunk["finish_reason"] = choice["finish_reason"]
                    yield chunk

    config = ModelRuntimeConfig()
    config.tool_call_parser, config.reasoning_parser = "hermes", "qwen3"
    config.context_length, config.total_kv_blocks = 131072, 20000
    config.max_num_seqs, config.max_num_batched_tokens = 256, 8192
    await register_model(ModelInput.Tokens, ModelType.Chat | ModelType.Completions, endpoint, folder, "m",
                         worker_type=WorkerType.Aggregated, kv_cache_block_size=16, runtime_config=config)
    await endpoint.serve_endpoint(generate, graceful_shutdown=True)


uvloop.run(main())

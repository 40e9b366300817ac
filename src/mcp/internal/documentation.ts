/**
 * What a model is told of the `mcp` block.
 */

import * as Block from "../../Block.ts"
import { visible } from "../../internal/base/text.ts"

/** The text for servers of these names. */
export const documentation = (servers: ReadonlyArray<string>): string =>
  `Reaches MCP servers: ${servers.map((name) => Block.escape(visible(name))).join(", ")}. Write one JSON object with a method and its params into the block:

<block type="mcp">{"method": "tools/list", "params": {"server": "NAME"}}</block>

Methods:
- servers/list: the names of the servers.
- tools/list: what can be called. params: server (all servers when left out).
- tools/describe: the input of one tool. params: name, server?
- tools/call: calls a tool. params: name, arguments?, server?
- resources/list: what can be read; an address with {braces} is a pattern to be filled in. params: server?
- resources/read: reads one. params: uri, server?
- prompts/list: the prompts there are. params: server?
- prompts/get: the messages of one. params: name, arguments?, server?

The answer comes as a result block named mcp; what went wrong comes as an error block. The name of a tool is not a method: put it into the params of tools/call. Ask tools/describe before you call a tool for the first time.`

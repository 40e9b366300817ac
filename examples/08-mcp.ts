/**
 * MCP servers: their tools as skills, and everything they offer behind the block `mcp`.
 *
 * The server is a real process that starts and ends with the run. The model is scripted, so this runs without a key.
 * Outside a clone, install the server with `npm install @modelcontextprotocol/server-filesystem`.
 *
 * npm run example -- examples/08-mcp.ts
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, Skill, SkillRegistry } from "kernai"
import { McpHub } from "kernai/mcp"
import { MockProvider } from "kernai/testing"

// A skill of our own, in addition to those of the server.
const countWords = Skill.make("count_words", {
  description: "Counts the words of a text",
  input: Schema.Struct({ text: Schema.String }),
  effects: "read",
  execute: ({ text }) => Effect.succeed(`${text.trim().split(/\s+/).length} words`)
})

const agent = Agent.make({ instructions: "You answer questions about files.", model: "scripted", skills: "all" })

const program = Effect.gen(function* () {
  for (const { name, skills, state } of yield* (yield* McpHub.McpHub).status) {
    yield* Console.log(`${name}: ${state}, ${skills.size} tools`)
  }
  const result = yield* Kernel.run(agent, "How many words has letter.txt, and how large is it?")
  for (const { isError, name } of result.calls) {
    yield* Console.log(`${name} ${isError ? "failed" : "answered"}`)
  }
  yield* Console.log(result.text)
})

// The hub registers in the registries the kernel reads: one recipe for all three.
const Registries = Layer.merge(SkillRegistry.layer(countWords), ProtocolRegistry.layer())
const Servers = McpHub.layerConfig("examples/mcp.yml").pipe(
  Layer.provideMerge(Registries),
  Layer.provide([NodeServices.layer, FetchHttpClient.layer])
)
const Model = MockProvider.layer(
  `<block type="mcp">{"method": "tools/call", "params": {"name": "get_file_info", "arguments": {"path": "letter.txt"}}}</block>`,
  `<block type="command" name="mcp_files__read_text_file">{"path": "letter.txt"}</block>`,
  `<block type="command" name="count_words">Bonjour, petit monde. La mer est calme, le chat dort dans le jardin.</block>`,
  `<block type="final">It has 13 words in 69 bytes.</block>`
)
const KernelLive = Kernel.layer.pipe(
  Layer.provideMerge(Servers),
  Layer.provide([Model, MediaStore.layerMemory, RunStore.layerMemory])
)

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// files: connected, 14 tools
// mcp answered
// mcp_files__read_text_file answered
// count_words answered
// It has 13 words in 69 bytes.

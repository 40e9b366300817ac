/**
 * An agent answers from documents of its caller's tenant, and cites where it read.
 *
 * Indexing again stores only what changed. With a file name instead of `:memory:`, documents outlive the process.
 *
 * npm run example -- examples/17-knowledge.ts
 */
import { Console, Effect, Layer } from "effect"
import { Agent, Kernel, Knowledge, type Memory, Message, Middleware, SkillRegistry } from "kernai"
import { SqlMemory } from "kernai/sql"
import { MockProvider } from "kernai/testing"

const manual = `# Coffee machine

## Cleaning

Rinse the milk pipe every evening.

## Errors

E4 means that the water tank is empty.
`

const tenant: Memory.Filter = ({ caller }) => ({ tenant: caller?.tenant ?? null })

const desk = Agent.make({ instructions: "You answer from the manual.", model: "m", skills: "all" })

const model = MockProvider.make(
  `<block type="command" name="search">{"query": "error E4"}</block>`,
  `<block type="final">The water tank is empty (machine.md:7-9).</block>`
)

const Live = Kernel.layerMemory.pipe(
  Layer.provide(Middleware.layer(Knowledge.citations)),
  Layer.provide([SkillRegistry.layer(Knowledge.skill({ filter: tenant })), MockProvider.layerOf(model)]),
  Layer.provideMerge(Layer.provide(Knowledge.layer(), SqlMemory.layerSqlite(":memory:")))
)

const program = Effect.gen(function* () {
  const knowledge = yield* Knowledge.Knowledge
  const acme = { name: "machine.md", metadata: { tenant: "acme" } }
  yield* knowledge.index({ ...acme, content: manual })
  yield* knowledge.index({ name: "prices.md", content: "E4 costs 400.", metadata: { tenant: "umbrella" } })

  const changed = yield* knowledge.index({ ...acme, content: manual.replace("evening", "morning") })
  yield* Console.log(`${changed.passages} passages, ${changed.removed} replaced`)

  const found = yield* knowledge.search({ query: "When do I rinse the pipe?", filter: { tenant: "acme" }, limit: 1 })
  for (const { citation, heading } of found) yield* Console.log(`${citation} ${heading}`)

  const result = yield* Kernel.run(desk, "What is E4?", { caller: { id: "ada", tenant: "acme" } })
  yield* Console.log(result.text)
  for (const { title } of Message.sources(result.messages)) yield* Console.log(`source: ${title}`)
  yield* Console.log(`saw another tenant: ${JSON.stringify(model.lastCall?.messages).includes("costs 400")}`)
})

await Effect.runPromise(Effect.provide(program, Live))

// Prints:
// 2 passages, 1 replaced
// machine.md:1-5 Coffee machine > Cleaning
// The water tank is empty (machine.md:7-9).
// source: machine.md:7-9 Coffee machine > Errors
// saw another tenant: false

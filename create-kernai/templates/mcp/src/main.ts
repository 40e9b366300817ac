import { Console, Effect } from "effect"
import { Kernel } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, live } from "./live.ts"

const model = MockProvider.layer(
  `<block type="command" name="mcp_files__list_allowed_directories">{}</block>`,
  `<block type="final">I may read this folder.</block>`
)

const program = Effect.gen(function* () {
  const result = yield* Kernel.run(agent, "What may you read?")
  yield* Console.log(result.text)
})

await Effect.runPromise(Effect.provide(program, live(model)))

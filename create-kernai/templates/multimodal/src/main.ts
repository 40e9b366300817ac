import { Console, Effect } from "effect"
import { Kernel } from "kernai"
import { agent } from "./agent.ts"
import { live } from "./live.ts"

const program = Effect.gen(function* () {
  const result = yield* Kernel.run(agent, "Draw a dot and tell me its size.")
  yield* Console.log(result.text)
})

await Effect.runPromise(Effect.provide(program, live))

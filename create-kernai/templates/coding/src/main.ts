import { Console, Effect } from "effect"
import { Kernel } from "kernai"
import { Workspace } from "kernai/workspace"
import { agent } from "./agent.ts"
import { live } from "./live.ts"

const program = Effect.gen(function* () {
  const { text } = yield* Kernel.run(agent, "The test fails.")
  const { output } = yield* Workspace.Workspace.use((workspace) => workspace.run("cat sum.sh"))
  yield* Console.log(`${text}\n${output}`)
})

await Effect.runPromise(Effect.provide(program, live))

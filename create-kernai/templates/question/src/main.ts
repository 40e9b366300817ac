import { Console, Effect } from "effect"
import { Kernel } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, kernel } from "./agent.ts"

// npm start                 writes a letter and waits
// npm start -- approve ID   sends it
// npm start -- deny ID      does not
const [word, runId] = process.argv.slice(2)
const asks = `<block type="command" name="send">{"to": "Oslo", "text": "Hello"}</block>`

const begin = Kernel.run(agent, "Write to Oslo.", { provider: MockProvider.make(asks) }).pipe(
  Effect.flatMap((result) => Console.log(result.text)),
  Effect.catchTag("RunPaused", (paused) => Console.log(`${paused.message}\nnpm start -- approve ${paused.runId}`))
)

const decide = Effect.fn("decide")(function* (runId: string, approved: boolean) {
  const answer = MockProvider.make(`<final>${approved ? "It is on its way." : "It was not sent."}</final>`)
  const open = yield* Kernel.questions(runId)
  for (const { input, name } of open) yield* Console.log(`${name} ${JSON.stringify(input)}: ${word}`)
  const answers = open.map(({ callId }) => ({ callId, approved, by: "you" }))
  const result = yield* Kernel.resume(agent, runId, { provider: answer, answers })
  yield* Console.log(result.text)
})

const program = runId === undefined ? begin : decide(runId, word === "approve")
await Effect.runPromise(Effect.provide(program, kernel("runs.db")))

/**
 * A session in JSON files that survives its failures.
 *
 * A run is two files: its head in `<id>.json`, its journal in `<id>.jsonl`. It
 * fails before its prompt is prepared, or in its model call, and a later
 * process continues it with one more message. Without an id, that is the session of the last failure.
 *
 * npm run example -- examples/json-session-recovery.ts fail "What is a fiber?"
 * npm run example -- examples/json-session-recovery.ts model-fail "What is a fiber?"
 * npm run example -- examples/json-session-recovery.ts reply "And in short?"
 * npm run example -- examples/json-session-recovery.ts show
 *
 * The files are in the folder SESSIONS, by default .kernai/sessions. A script replies, unless MODEL names a model, such as
 * MODEL=anthropic/claude-sonnet-4, whose key is in the environment.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Console, Effect, Layer, Option } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Hooks, Kernel, KernelError, Message, RunStore } from "kernai"
import { FileRunStore } from "kernai/file"
import { HttpModelRegistry } from "kernai/provider"
import { MockProvider } from "kernai/testing"

const [command = "", ...words] = process.argv.slice(2)
const [named] = words.filter((word) => word.startsWith("session-"))
const [text] = words.filter((word) => word !== named)

const agent = Agent.make({
  name: "session",
  instructions: "You answer in one sentence.",
  model: command === "reply" ? (process.env["MODEL"] ?? "scripted") : "scripted"
})

const model = MockProvider.layer(
  command === "reply"
    ? '<block type="final">A fiber is a thread that costs next to nothing.</block>'
    : new KernelError.ProviderError({
        provider: "mock",
        reason: "authentication",
        detail: "the key is no longer valid"
      })
)

const hooks = Hooks.layer({
  onTurnStarted: () => (command === "fail" ? Effect.fail("the process had a bad day") : Effect.succeed({})),
  // The new message is part of the run's context, so it is stored, too; a prompt that is prepared again includes it.
  onTurnPrepared: ({ context, prepared }) => {
    const said = context["reply"]
    if (typeof said !== "string") return Effect.succeed({})
    return Effect.succeed({ value: { ...prepared, messages: [...prepared.messages, Message.user(said)] } })
  }
})

const print = Effect.fn("print")(function* (id: string) {
  const store = yield* RunStore.RunStore
  const state = Option.getOrUndefined(yield* store.load(id))
  if (state === undefined) return yield* Console.log(`there is no session ${JSON.stringify(id)}`)
  const { status } = state
  yield* Console.log(`${state.runId} is ${status.type}/${status.phase} at revision ${state.revision}`)
  for (const message of state.prompt) yield* Console.log(`  ${message.role}: ${JSON.stringify(Message.text(message))}`)
})

/** The session that is named, or the one that was stored last. */
const session = Effect.gen(function* () {
  if (named !== undefined) return named
  const store = yield* RunStore.RunStore
  const runs = yield* store.list()
  return runs.toSorted((a, b) => b.updatedAt - a.updatedAt)[0]?.runId ?? "session-0"
})

const begin = Effect.gen(function* () {
  const id = `session-${(yield* Clock.currentTimeMillis).toString(36)}`
  yield* Effect.catch(Kernel.run(agent, text ?? "What is a fiber?", { runId: id }), (error) =>
    Console.log(`failed: ${error.message}`)
  )
  yield* print(id)
})

const reply = Effect.gen(function* () {
  // `rewind` prepares the turn again. Otherwise a prompt that was stored before the failure would be sent unchanged.
  const id = yield* session
  const result = yield* Kernel.resume(agent, id, { rewind: true, context: { reply: text ?? "Go on." } })
  yield* Console.log(`answer: ${result.text}`)
  yield* print(id)
})

const program =
  command === "fail" || command === "model-fail"
    ? begin
    : command === "reply"
      ? reply
      : command === "show"
        ? Effect.flatMap(session, print)
        : Console.log("json-session-recovery.ts fail [text] | model-fail [text] | reply [id] [text] | show [id]")

const live = Kernel.layerWith({
  provider: model,
  models: Layer.provide(HttpModelRegistry.layer, FetchHttpClient.layer),
  store: FileRunStore.layer(process.env["SESSIONS"] ?? ".kernai/sessions")
}).pipe(Layer.provide(hooks), Layer.provide(NodeServices.layer))

await Effect.runPromise(Effect.provide(program, live))

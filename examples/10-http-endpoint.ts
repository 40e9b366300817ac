/**
 * Runs over HTTP: events go to a page as they happen, and a page that leaves stops its run.
 *
 * The response is the stream of the run itself. When the client disconnects, the server interrupts it, and with it the
 * model call, the skills and the children.
 *
 * npm run example -- examples/10-http-endpoint.ts
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Console, Deferred, Effect, Layer, Schema, Stream } from "effect"
import {
  HttpClient,
  HttpClientRequest,
  HttpClientResponse,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { Agent, Kernel, RunEvent, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

// A slow skill that reports when it is interrupted.
const stopped = Deferred.makeUnsafe<void>()
const research = Skill.make("research", {
  description: "Looks for a long time",
  input: Schema.Struct({ topic: Schema.String }),
  effects: "read",
  execute: ({ topic }) =>
    Effect.as(Effect.sleep("1 hour"), topic).pipe(Effect.onInterrupt(() => Deferred.succeed(stopped, undefined)))
})

const agent = Agent.make({ instructions: "You look things up.", model: "scripted", skills: [research] })

// The events for a page. Others hold data that is not for it: `turn_prepared` and `messages_sent` have the agent's
// instructions.
const shown: ReadonlySet<RunEvent.Type> = new Set([
  "block_content",
  "skill_execute",
  "skill_result",
  "paused",
  "run_completed",
  "run_failed"
])

const Runs = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const kernel = yield* Kernel.Kernel
    const answer = Effect.gen(function* () {
      const { question } = yield* HttpServerRequest.schemaBodyJson(Schema.Struct({ question: Schema.String }))
      const events = kernel.stream(agent, question).pipe(
        Stream.filter((event) => shown.has(event.type)),
        Stream.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(RunEvent.toJson(event))}\n\n`),
        // The head of the response has been sent by now, so a failure is sent as one more event.
        Stream.catch((error) => Stream.make(`event: failure\ndata: ${JSON.stringify(error.message)}\n\n`)),
        Stream.encodeText
      )
      return HttpServerResponse.stream(events, { contentType: "text/event-stream" })
    })
    yield* router.add("POST", "/runs", answer)
  })
)

const KernelLive = Kernel.layerMemory.pipe(
  Layer.provide([
    SkillRegistry.layer(research),
    MockProvider.layer(`<block type="command" name="research">{"topic": "fibers"}</block>`)
  ])
)

const Server = HttpRouter.serve(Runs, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provide(KernelLive),
  // A server on a free port, with a client that knows it: `NodeHttpServer.layer(createServer, { port })` for users.
  Layer.provideMerge(NodeHttpServer.layerTest)
)

// A page that asks, and leaves while the skill is running.
const page = HttpClientRequest.post("/runs").pipe(
  HttpClientRequest.bodyJsonUnsafe({ question: "What is a fiber?" }),
  HttpClient.execute,
  HttpClientResponse.stream,
  Stream.decodeText(),
  Stream.splitLines,
  Stream.filter((line) => line.startsWith("event: ")),
  Stream.takeUntil((line) => line === "event: skill_execute"),
  Stream.runLast
)

const program = Effect.gen(function* () {
  const last = yield* page
  yield* Console.log("the page left after", last._tag === "Some" ? last.value : "nothing")
  yield* Deferred.await(stopped)
  yield* Console.log("the skill was stopped")
})

await Effect.runPromise(Effect.provide(program, Server))

// Prints:
// the page left after event: skill_execute
// the skill was stopped

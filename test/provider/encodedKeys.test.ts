/** Keys that a service repeats in its error in another form, and every place to which its words go. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Fiber, Layer, Logger, Redacted, Stream, Tracer } from "effect"
import { TestClock, TestConsole } from "effect/testing"
import { Agent, Kernel, Limits, Recorder, Redaction, type RunEvent, RunStore, Telemetry } from "kernai"
import { McpConfig } from "kernai/mcp"
import { AiSdkProvider } from "kernai/provider"
import { toError } from "../../src/provider/internal/providerFault.ts"
import { safeWords } from "../../src/provider/internal/vendorWords.ts"
import { Failures } from "../../src/mcp/internal/requestFailure.ts"
import { encodings, keys, leftOf } from "../support/encodings.ts"
import { kernel } from "../support/kernel.ts"
import { times } from "../support/longRun.ts"
import { key, read, request, stub, vendor, vendors } from "../support/provider.ts"

const forms = Object.entries(encodings)
const once = Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 2 })

/** A response that repeats a form of the key in every field of its error. */
const refusal = (form: string, status = 401) => {
  const said = { message: `invalid key ${form}, see the docs`, code: form, type: form, param: form, status: form }
  const headers = new Headers({ "x-request-id": form.replace(/[^\x20-\x7e]/g, "") })
  return new Response(JSON.stringify({ error: said, request_id: form }), { status, headers })
}

describe("A key that a service repeats in its error", () => {
  it.each(forms)("leaves nothing of it in the vendor's words, as %s", (_, encode) => {
    for (const secret of keys(times(1_000, 100))) {
      const form = encode(secret)
      const said = `invalid key ${form}, see the docs`
      const words = safeWords({ message: said, code: form, type: form, parameter: form, requestId: form }, [secret])
      assert.isUndefined(leftOf(JSON.stringify(words), form), form)
      assert.include(words?.message, "see the docs")
      const codes = [form, form.replace(/[^A-Z]/g, ""), form.replace(/[^a-z]/g, "")]
      for (const code of codes) {
        const { detail } = toError("openai", { reason: "authentication", code }, [secret], 1)
        assert.isUndefined(leftOf(detail, form), form)
      }
    }
  })

  it.each(forms)(
    "leaves nothing of it in texts with a redactor, and in errors of MCP servers, as %s",
    (name, encode) => {
      const secrets = keys(times(200, 20), 11)
      for (const secret of secrets) {
        const form = encode(secret)
        // The rest of a document is not the key's.
        const part = name === "base64 of a document" ? form.slice(26, -24) : form
        const said = `invalid key ${form}, see the docs`
        const redactor = Redaction.make({ secrets: [secret, ...secrets.slice(0, 3)].map((one) => Redacted.make(one)) })
        assert.isUndefined(leftOf(redactor.text(said), part), form)
        const headers = { authorization: Redacted.make(`Bearer ${secret}`) }
        const failures = new Failures({ ...server, headers })
        const { message } = failures.notFound(said)
        assert.isUndefined(leftOf(message, part), form)
        assert.match(message, /^invalid key .*see the docs$/s)
      }
    }
  )

  it.each(forms)("is found without being known if it looks like a key, as %s", (name, encode) => {
    // What has changed its case in base64 cannot be decoded any more.
    if (name.includes("changed case")) return
    const form = encode("sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")
    const words = safeWords({ message: `invalid key ${form}, see the docs` }, [])
    assert.isUndefined(leftOf(words?.message ?? "", form), `${name}: ${words?.message}`)
  })

  for (const name of Object.keys(vendors)) {
    it.effect(`leaves nothing of it in the failure of a call of ${name}`, () =>
      Effect.gen(function* () {
        for (const [kind, encode] of forms) {
          const form = encode(Redacted.value(key))
          const http = stub(() => Effect.sync(() => refusal(form, 503)))
          const provider = yield* Effect.provide(vendor(name)({}), http.layer)
          const fiber = yield* Effect.forkChild(Effect.flip(read(provider.stream(request()))))
          yield* TestClock.adjust("1 minute")
          const error = yield* Fiber.join(fiber)
          assert.lengthOf(error.history ?? [], 1)
          for (const text of [JSON.stringify(error), Cause.pretty(Cause.fail(error)), String(error)]) {
            assert.isUndefined(leftOf(text, form), `${kind}: ${text}`)
          }
        }
      }).pipe(once)
    )
  }

  it.effect("leaves nothing of it in the failure of a model of the AI SDK", () =>
    Effect.gen(function* () {
      for (const [kind, encode] of forms) {
        if (kind.includes("changed case")) continue
        const form = encode(Redacted.value(key))
        const refused = Object.assign(new Error(`invalid key ${form}`), {
          name: "AI_APICallError",
          statusCode: 401,
          responseBody: JSON.stringify({ error: { message: `invalid key ${form}`, code: form } })
        })
        const provider = AiSdkProvider.fromModel({
          specificationVersion: "v4",
          provider: "theirs",
          modelId: "m",
          supportedUrls: {},
          doStream: () => Promise.reject(refused)
        })
        const error = yield* Effect.flip(read(provider.stream(request())))
        assert.isUndefined(leftOf(JSON.stringify(error), form), `${kind}: ${JSON.stringify(error)}`)
      }
    })
  )

  it.effect("leaves nothing of it in events, journal, log, spans and exports of the run", () =>
    Effect.gen(function* () {
      for (const [kind, encode] of forms) {
        const form = encode(Redacted.value(key))
        const http = stub(() => Effect.sync(() => refusal(form)))
        const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
        const events: Array<RunEvent.RunEvent> = []
        const spans: Array<Tracer.NativeSpan> = []
        const logged: Array<string> = []
        const tracer = Tracer.make({
          span: (options) => {
            const span = new Tracer.NativeSpan(options)
            spans.push(span)
            return span
          }
        })
        const log = Logger.layer([Logger.make((line) => void logged.push(Logger.formatLogFmt.log(line)))])
        const seen = yield* Effect.gen(function* () {
          const agent = Agent.make({ instructions: "", model: "m" })
          const run = Kernel.stream(agent, "hi", { provider, runId: `r-${kind.replace(/\W/g, "-")}` })
          const exit = yield* Effect.exit(Stream.runForEach(run, (event) => Effect.sync(() => void events.push(event))))
          yield* Effect.logError("the run failed", exit)
          const runId = events[0]!.runId
          const recording = yield* Recorder.Recording
          return {
            failure: JSON.stringify(exit),
            events: JSON.stringify(events),
            journal: JSON.stringify(yield* RunStore.recordsOf(runId)),
            export: recording.toJson(),
            lines: JSON.stringify(yield* TestConsole.logLines),
            logged: logged.join("\n"),
            spans: JSON.stringify(
              spans.map(({ attributes, events, name, status }) => [
                name,
                [...attributes],
                events,
                status._tag === "Ended" && status.exit._tag === "Failure" ? Cause.pretty(status.exit.cause) : ""
              ])
            )
          }
        }).pipe(
          Effect.provide(
            Layer.mergeAll(
              kernel(),
              Recorder.layerLogger().pipe(Layer.provideMerge(Recorder.layerMemory({ phases: true }))),
              log,
              Telemetry.layer({ captureContent: true })
            )
          ),
          Effect.provideService(Tracer.Tracer, tracer)
        )
        for (const [surface, text] of Object.entries(seen)) {
          assert.isAbove(text.length, 2, surface)
          assert.isUndefined(leftOf(text, form), `${kind} in the ${surface}: ${leftOf(text, form)}`)
        }
        assert.include(seen.events, "see the docs")
      }
    })
  )
})

const server = Effect.runSync(
  Effect.map(McpConfig.fromValue({ servers: { it: { url: "https://a.example/mcp" } } }), ({ servers }) => {
    const found = servers.get("it")
    assert(found?.transport === "streamable_http")
    return found
  })
)

/** Keys that a server repeats in the result of a failed call, and every place to which that result goes. */
import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Layer, Logger, Stream, Tracer } from "effect"
import { TestConsole } from "effect/testing"
import { Agent, Kernel, MediaStore, Recorder, type RunEvent, RunStore, Telemetry } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { encodings, leftOf } from "../support/encodings.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Hub from "../support/mcp/hub.ts"

// It has the form of no vendor's key, so that only who knows it can find it.
const key = "Zq7vKd3mRw9xTb2nYc5hLp8g"
const forms = Object.entries(encodings).map(([kind, encode], at) => ({ name: `t${at}`, kind, form: encode(key) }))

const failed = (form: string) => ({
  content: [
    { type: "text", text: `invalid key ${form}, see the docs` },
    { type: "resource", resource: { uri: "x://log", text: `sent ${form}` } }
  ],
  structuredContent: { error: form, [form]: 1 },
  isError: true
})

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("A key in a failed result", (it) => {
  it.effect("leaves nothing of it in events, journal, log, spans and exports of the run", () =>
    Effect.gen(function* () {
      const { settings } = yield* Hub.scripted({
        tools: forms.map(({ name }) => Hub.tool(name)),
        results: Object.fromEntries(forms.map(({ form, name }) => [name, failed(form)]))
      })
      const servers = { s: { ...settings, env: { SERVICE_KEY: key } } }
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
      const mock = MockProvider.make(forms.map(({ name }) => command(`mcp_s__${name}`, {})).join(""), final("done"))
      const kernel = Kernel.layer.pipe(
        Layer.provideMerge(Hub.hub(servers)),
        Layer.provideMerge(Layer.mergeAll(MockProvider.layerOf(mock), MediaStore.layerMemory, RunStore.layerMemory))
      )
      const seen = yield* Effect.gen(function* () {
        const agent = Agent.make({ instructions: "", model: "mock", skills: "all" })
        yield* Stream.runForEach(Kernel.stream(agent, "go"), (event) => Effect.sync(() => void events.push(event)))
        yield* Effect.logWarning("failed calls", events)
        const recording = yield* Recorder.Recording
        return {
          events: JSON.stringify(events),
          journal: JSON.stringify(yield* RunStore.recordsOf(events[0]!.runId)),
          requests: JSON.stringify(mock.calls.map(({ messages }) => messages)),
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
            kernel,
            Recorder.layerLogger().pipe(Layer.provideMerge(Recorder.layerMemory({ phases: true }))),
            Logger.layer([Logger.make((line) => void logged.push(Logger.formatLogFmt.log(line)))]),
            Telemetry.layer({ captureContent: true })
          )
        ),
        Effect.provideService(Tracer.Tracer, tracer),
        Effect.provide(TestConsole.layer)
      )
      assert.strictEqual(seen.events.split("see the docs").length > forms.length, true)
      for (const [surface, text] of Object.entries(seen)) {
        assert.isAbove(text.length, 1, surface)
        for (const { form, kind } of forms) {
          // The rest of a document is not the key's.
          const part = kind === "base64 of a document" ? form.slice(26, -24) : form
          assert.isUndefined(leftOf(text, part), `${kind} in the ${surface}: ${leftOf(text, part)}`)
        }
      }
    })
  )
})

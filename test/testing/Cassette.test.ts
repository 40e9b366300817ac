import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, FileSystem, Layer, Logger, Stream } from "effect"
import { HttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { Limits } from "kernai"
import { Cassette } from "../../src/testing/index.ts"
import { chunk, ending } from "../support/chatStream.ts"
import { cassettes, read, request, stub, vendor } from "../support/provider.ts"

const secret = "sk-SECRET-0123456789abcdef"

const live = () =>
  stub((_, call) =>
    Effect.succeed(
      new Response(chunk({ content: `reply ${call}, not ${secret}` }) + ending, {
        headers: {
          "content-type": "text/event-stream",
          "set-cookie": "session=1",
          "request-id": "req_1",
          "openai-organization": "acme",
          "x-ratelimit-remaining-requests": "9"
        }
      })
    )
  )

const ask = (text: string) =>
  Effect.gen(function* () {
    const provider = yield* vendor("openai")({})
    return (yield* read(provider.stream(request({ messages: [{ role: "user", content: [{ type: "text", text }] }] }))))
      .text
  })

const inFile = <A, E>(use: (file: string) => Effect.Effect<A, E, FileSystem.FileSystem>): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const folder = yield* Effect.orDie(files.makeTempDirectoryScoped())
    return yield* use(`${folder}/run.json`)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

/** What is logged, and the limits of what is read whole. */
const within = (fetchedBytes: number) => {
  const lines: Array<string> = []
  const layer = Layer.merge(
    Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]),
    Layer.succeed(Limits.Limits, { ...Limits.defaults, fetchedBytes })
  )
  return { lines, layer }
}

describe("Cassette", () => {
  it.effect("records exchanges and plays them back without the network", () =>
    inFile((inFolder) =>
      Effect.gen(function* () {
        // Nobody made its folder.
        const file = inFolder.replace("run.json", "cassettes/run.json")
        const http = live()
        const layer = (mode: "none" | "new" | "all") => Cassette.layer({ file, mode }).pipe(Layer.provide(http.layer))

        assert.match(yield* Effect.provide(ask("hi"), layer("new")), /^reply 0/)
        assert.strictEqual(http.asked.length, 1)
        assert.match(yield* Effect.provide(ask("hi"), layer("none")), /^reply 0/)
        assert.match(yield* Effect.provide(ask("hi"), layer("new")), /^reply 0/)
        assert.strictEqual(http.asked.length, 1)
        assert.match(yield* Effect.provide(ask("hi"), layer("all")), /^reply 1/)
        assert.match(yield* Effect.provide(ask("hi"), layer("none")), /^reply 1/)
        assert.strictEqual(http.asked.length, 2)
      })
    )
  )

  it.effect("mode `new` plays recorded exchanges and records the others", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const http = live()
        const both = Effect.all([ask("a"), ask("b")])
        const layer = Cassette.layer({ file, mode: "new" }).pipe(Layer.provide(http.layer))
        yield* Effect.provide(ask("a"), layer, { local: true })
        yield* Effect.provide(both, layer, { local: true })
        assert.strictEqual(http.asked.length, 2)
        const cassette = yield* Cassette.fromFile(file)
        assert.strictEqual(cassette.interactions.length, 2)
        assert.strictEqual(cassette.model, "m-text")
      })
    )
  )

  it.effect("records no key, cookie or id (S-7)", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const http = live()
        yield* Effect.provide(ask("hi"), Cassette.layer({ file, mode: "all" }).pipe(Layer.provide(http.layer)))
        const files = yield* FileSystem.FileSystem
        const text = yield* Effect.orDie(files.readFileString(file))
        for (const word of [secret, "Bearer", "session=1", "req_1", "acme"]) assert.notInclude(text, word)
        const { interactions } = yield* Cassette.parse(text)
        assert.deepStrictEqual(interactions[0]?.request.headers, { "content-type": "application/json" })
        assert.deepStrictEqual(interactions[0]?.response.headers, {
          "content-type": "text/event-stream",
          "x-ratelimit-remaining-requests": "9"
        })
        assert.include(interactions[0]?.response.body, "not [redacted]")
        assert.strictEqual(interactions[0]?.response.format, "sse")
        assert.strictEqual(interactions[0]?.response.frames.length, 3)
      })
    )
  )

  it.effect("records no secret that a server repeats, whatever its header or parameter is called (S-7)", () =>
    Effect.gen(function* () {
      const organization = "org-0123456789abcdefABCDEFGH"
      const id = "req_011CSHoEeqs5C35K2UUqR7Fy"
      const http = stub(({ headers, url }) =>
        Effect.succeed(
          Response.json(
            { error: `no: ${JSON.stringify(headers)} at ${url} of ${organization}, acme and user 7 (${id}, trace-77)` },
            { status: 401, headers: { "openai-organization": "acme", "x-request-id": "trace-77" } }
          )
        )
      )
      const saved: Array<string> = []
      const client = Cassette.recorder(http.client, (exchange) =>
        Effect.sync(() => saved.push(JSON.stringify(exchange)))
      )
      const kept = (url: string, headers: Readonly<Record<string, string>> = {}) =>
        Effect.gen(function* () {
          yield* Effect.flatMap(client.get(url, { headers }), (response) => response.text)
          return saved.at(-1) ?? ""
        })
      for (const name of ["ocp-apim-subscription-key", "x-custom-auth", "cf-aig-authorization", "Client-Secret"]) {
        assert.notInclude(yield* kept("https://x.test/v1", { [name]: secret }), secret, name)
        assert.notInclude(yield* kept("https://x.test/v1", { [name]: `Bearer ${secret}` }), secret, name)
      }
      const odd = "a/b+c SECRET"
      for (const name of ["key", "subscription-key", "X-Amz-Signature", "sig", "access_token"]) {
        const text = yield* kept(`https://x.test/v1?${name}=${encodeURIComponent(odd)}&design=plain&max_tokens=1000`)
        for (const part of [odd, "SECRET", encodeURIComponent(odd)]) assert.notInclude(text, part, name)
        assert.include(text, "design=plain&max_tokens=1000")
      }
      const text = yield* kept("https://x.test/v1")
      for (const word of [organization, id, "acme", "trace-77"]) assert.notInclude(text, word)
      assert.include(text, "user 7")
    })
  )

  it.effect("does not record an exchange that was not read to its end, and logs it", () =>
    Effect.gen(function* () {
      const saved: Array<Cassette.Exchange> = []
      const logged = within(Limits.defaults.fetchedBytes)
      const recorded = (http: { readonly client: HttpClient.HttpClient }) =>
        Effect.provideService(
          vendor("openai")({}),
          HttpClient.HttpClient,
          Cassette.recorder(http.client, (exchange) => Effect.sync(() => saved.push(exchange)))
        )
      const unread = ["an exchange was not recorded: its end was not read"]

      // Given up.
      const provider = yield* recorded(live())
      yield* provider.stream(request()).pipe(
        Stream.takeUntil((part) => part.type === "text-delta"),
        Stream.runDrain,
        Effect.provide(logged.layer)
      )
      assert.deepStrictEqual(logged.lines.splice(0), unread)

      // A server that keeps the connection open after it said all.
      const slow = yield* recorded(
        stub(() =>
          Effect.sync(() => {
            const said = new TextEncoder().encode(chunk({ content: "hi" }) + ending)
            const body = new ReadableStream({ start: (controller) => controller.enqueue(said) })
            return new Response(body, { headers: { "content-type": "text/event-stream" } })
          })
        )
      )
      const reading = yield* Effect.forkChild(Effect.provide(read(slow.stream(request())), logged.layer), {
        startImmediately: true
      })
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(reading)).text, "hi")
      assert.deepStrictEqual(logged.lines.splice(0), unread)

      // A redirect, which nobody reads.
      const moved = yield* recorded(stub(() => Effect.succeed(Response.redirect("https://x.test/", 307))))
      yield* Effect.flip(Effect.provide(read(moved.stream(request())), logged.layer))
      assert.deepStrictEqual(logged.lines.splice(0), ["an exchange was not recorded: it is a redirect"])

      assert.deepStrictEqual(saved, [])
    })
  )

  it.effect("keeps a recording intact when it is stopped while recording another exchange", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const http = live()
        yield* Effect.provide(ask("hi"), Layer.provide(Cassette.layer({ file, mode: "new" }), http.layer))
        const before = yield* files.readFileString(file)

        const begun = yield* Deferred.make<void>()
        const slow: FileSystem.FileSystem = {
          ...files,
          writeFile: (path, bytes, options) =>
            files
              .writeFile(path, bytes.subarray(0, 9), options)
              .pipe(Effect.andThen(Deferred.succeed(begun, undefined)), Effect.andThen(Effect.never))
        }
        const recording = Cassette.layer({ file, mode: "all" }).pipe(
          Layer.provide([http.layer, Layer.succeed(FileSystem.FileSystem, slow)])
        )
        const asking = yield* Effect.forkChild(Effect.provide(ask("hello"), recording))
        yield* Deferred.await(begun)
        const stopping = yield* Effect.forkChild(Fiber.interrupt(asking), { startImmediately: true })
        yield* TestClock.adjust(Limits.defaults.cleanUpTimeout)
        yield* Fiber.join(stopping)
        assert.strictEqual(yield* files.readFileString(file), before)
        assert.deepStrictEqual(yield* files.readDirectory(file.slice(0, file.lastIndexOf("/"))), ["run.json"])
      })
    )
  )

  it.effect("writes a recording whose reader stopped waiting before it was written", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        let isWriting = false
        const slow: FileSystem.FileSystem = {
          ...files,
          writeFile: (path, bytes, options) =>
            Effect.delay(
              Effect.suspend(() => ((isWriting = true), files.writeFile(path, bytes, options))),
              "3 seconds"
            )
        }
        const { layer, lines } = within(Limits.defaults.fetchedBytes)
        const recording = Cassette.layer({ file, mode: "all" }).pipe(
          Layer.provide([live().layer, Layer.succeed(FileSystem.FileSystem, slow)])
        )
        const replied = yield* Deferred.make<string>()
        const asking = yield* Effect.forkChild(
          ask("hi").pipe(
            Effect.tap((text) => Deferred.succeed(replied, text)),
            Effect.provide(Layer.merge(recording, layer))
          )
        )
        // While the disk is at work no time passes.
        yield* Effect.forkChild(Effect.repeat(TestClock.adjust("100 millis"), { until: () => isWriting }))
        assert.match(yield* Deferred.await(replied), /^reply 0/)
        assert.isFalse(isWriting)
        yield* Fiber.join(asking)
        assert.lengthOf((yield* Cassette.fromFile(file)).interactions, 1)
        assert.deepStrictEqual(lines, [])
      })
    )
  )

  it.effect("fails the end of a recording that could not be written, and logs it as an error", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        yield* files.makeDirectory(file)
        const lines: Array<string> = []
        const logs = Logger.layer([Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${message}`))])
        const recording = Cassette.layer({ file, mode: "all" }).pipe(Layer.provide(live().layer))
        const replies: Array<string> = []
        const exit = yield* ask("hi").pipe(
          Effect.tap((text) => Effect.sync(() => replies.push(text))),
          Effect.provide(Layer.merge(recording, logs)),
          Effect.exit
        )
        assert.lengthOf(replies, 1)
        assert.deepStrictEqual(lines, [`Error an exchange was not recorded: '${file}' cannot be written`])
        assert.include(String(Exit.isFailure(exit) && Cause.squash(exit.cause)), `'${file}' cannot be written`)
      })
    )
  )

  it.effect("writes what could not be written together with the next exchange", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const recording = Cassette.layer({ file, mode: "all" }).pipe(Layer.provide(live().layer))
        yield* Effect.gen(function* () {
          yield* files.makeDirectory(file)
          yield* ask("hi")
          yield* files.remove(file, { recursive: true })
          yield* ask("hello")
        }).pipe(Effect.provide(recording))
        assert.lengthOf((yield* Cassette.fromFile(file)).interactions, 2)
      })
    )
  )

  it.effect("appends each exchange once, and reads them as one recording", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        let written = 0
        const counting: FileSystem.FileSystem = {
          ...files,
          writeFile: (path, bytes, options) => {
            written += bytes.length
            return files.writeFile(path, bytes, options)
          },
          open: (path, options) =>
            Effect.tap(files.open(path, options), (opened) => {
              const { writeAll } = opened
              const value = (bytes: Uint8Array) => {
                written += bytes.length
                return writeAll.call(opened, bytes)
              }
              return Effect.sync(() => Object.defineProperty(opened, "writeAll", { value }))
            })
        }
        const recording = Cassette.layer({ file, mode: "all" }).pipe(
          Layer.provide([live().layer, Layer.succeed(FileSystem.FileSystem, counting)])
        )
        yield* Effect.provide(Effect.forEach(Array.from({ length: 100 }, String), ask, { discard: true }), recording)

        const text = yield* Effect.orDie(files.readFileString(file))
        assert.isBelow(written, 1.1 * text.length)
        const { interactions } = yield* Cassette.parse(text)
        assert.lengthOf(interactions, 100)
        assert.strictEqual(text, `${JSON.stringify(JSON.parse(text), undefined, 2)}\n`)
      })
    )
  )

  it.effect("reads the complete exchanges of a recording whose write was interrupted anywhere", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const read = Effect.orDie(files.readFile(file))
        const write = (text: Uint8Array) => Effect.orDie(files.writeFile(file, text))
        const texts = yield* Effect.gen(function* () {
          yield* ask("hi")
          const one = yield* read
          yield* ask("é")
          return [one, yield* read] as const
        }).pipe(Effect.provide(Cassette.layer({ file, mode: "all" }).pipe(Layer.provide(live().layer))))
        const [one, two] = texts
        const from = one.findIndex((byte, at) => byte !== two[at])
        const { layer, lines } = within(Limits.defaults.fetchedBytes)
        for (let at = from; at < two.length; at += at < from + 12 || at > two.length - 12 ? 1 : 61) {
          const cut = new Uint8Array(Math.max(at, one.length))
          cut.set(one)
          cut.set(two.subarray(0, at))
          yield* write(cut)
          const { interactions } = yield* Effect.provide(Cassette.fromFile(file), layer, { local: true })
          const whole = at >= two.length - "\n  ]\n}\n".length ? 2 : 1
          assert.lengthOf(interactions, whole, `cut at ${at}`)
        }
        assert.deepStrictEqual(new Set(lines), new Set([`'${file}' was cut off: its last exchange is left out`]))

        // What is wrong elsewhere is no cut.
        const text = new TextDecoder().decode(two)
        for (const wrong of [text.replace('"method"', "method"), text.replace(/"format"(?=[^]*$)/, "format")]) {
          yield* write(new TextEncoder().encode(wrong))
          assert.strictEqual((yield* Effect.flip(Cassette.fromFile(file))).reason, "corrupt")
        }
      })
    )
  )

  it.effect("records everything again when the file was changed or removed in the meantime", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const count = Effect.map(Cassette.fromFile(file), ({ interactions }) => interactions.length)
        yield* Effect.gen(function* () {
          yield* ask("one")
          yield* ask("two")
          assert.strictEqual(yield* count, 2)
          yield* Effect.orDie(files.remove(file))
          yield* ask("three")
          assert.strictEqual(yield* count, 3)
          yield* Effect.orDie(files.writeFileString(file, "mine"))
          yield* ask("four")
          assert.strictEqual(yield* count, 4)
        }).pipe(Effect.provide(Cassette.layer({ file, mode: "all" }).pipe(Layer.provide(live().layer))))
      })
    )
  )

  it.effect("mode `none` fails for a request that was not recorded, and plays each recording once", () =>
    Effect.gen(function* () {
      const text = cassettes("cassettes").find((cassette) => cassette.name === "openai_final_block")?.text ?? ""
      const cassette = yield* Cassette.parse(text)
      yield* Effect.gen(function* () {
        assert.include(yield* ask("hi"), "2+2 equals 4.")
        const error = yield* Effect.flip(ask("hi"))
        assert.strictEqual(error.reason, "invalid_request")
        const client = yield* HttpClient.HttpClient
        assert.include((yield* Effect.flip(client.get("https://x.test/other"))).message, "GET /other")
      }).pipe(Effect.provide(Cassette.layerReplay(cassette)))
    })
  )

  it.effect("fails with a typed error for a file that is missing or not a recording", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const none = Layer.build(Cassette.layer({ file, mode: "none" }).pipe(Layer.provide(live().layer)))
        assert.strictEqual((yield* Effect.flip(none)).reason, "unavailable")
        const files = yield* FileSystem.FileSystem
        for (const text of ["", "[]", '{"vendor":1}', '{"__proto__":{"polluted":1}}']) {
          yield* Effect.orDie(files.writeFileString(file, text))
          const torn = yield* Effect.flip(none)
          assert.strictEqual(torn.reason, "corrupt")
          assert.include(torn.message, `'${file}' is not a recording in a known format`)
        }
        assert.notProperty({}, "polluted")
      }).pipe(Effect.scoped)
    )
  )

  it.effect("does not read a file that is too large or not a regular file", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const text = JSON.stringify({ vendor: "v", name: "n", model: "m", interactions: [] })
        yield* Effect.orDie(files.writeFileString(file, text))
        const read = (limit: number, path = file) =>
          Effect.provide(Cassette.fromFile(path), within(limit).layer, { local: true })
        assert.strictEqual((yield* read(text.length)).name, "n")
        const large = yield* Effect.flip(read(text.length - 1))
        assert.strictEqual(large.reason, "limit_exceeded")
        assert.include(large.message, `'${file}' is larger than ${text.length - 1} bytes`)
        const folder = yield* Effect.flip(read(text.length, file.slice(0, file.lastIndexOf("/"))))
        assert.strictEqual(folder.reason, "unavailable")
        assert.include(folder.message, "is not a plain file")
      })
    )
  )

  it.effect("logs an exchange whose reader does not wait until it is written", () =>
    Effect.gen(function* () {
      const http = stub(() => Effect.succeed(new Response("whole")))
      const saved: Array<string> = []
      const client = Cassette.recorder(http.client, ({ response }) =>
        Effect.delay(
          Effect.sync(() => saved.push(response.body)),
          "1 second"
        )
      )
      const { layer, lines } = within(100)
      const read = Effect.flatMap(client.get("https://x.test/"), ({ stream }) => Stream.runDrain(stream))
      const reading = yield* Effect.forkChild(Effect.provide(Effect.timeoutOption(read, "200 millis"), layer))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(reading)
      assert.deepStrictEqual(
        [saved, lines],
        [[], ["an exchange was not recorded: its reader did not wait until it was written"]]
      )
    })
  )

  it.effect("passes through a body that is too large to record, and records the others", () =>
    Effect.gen(function* () {
      const bodies = ["é".repeat(50), "é".repeat(51), "short"]
      const http = stub((_, call) => Effect.succeed(new Response(bodies[call])))
      const saved: Array<string> = []
      const client = Cassette.recorder(http.client, ({ response }) => Effect.sync(() => saved.push(response.body)))
      const { layer, lines } = within(100)
      const texts = Effect.forEach(bodies, () => Effect.flatMap(client.get("https://x.test/"), ({ text }) => text))
      assert.deepStrictEqual(yield* Effect.provide(texts, layer), bodies)
      assert.deepStrictEqual(saved, [bodies[0], "short"])
      assert.deepStrictEqual(lines, ["an exchange was not recorded: its body is larger than 100 bytes"])
    })
  )

  it.effect("returns a body in every form a client offers, recorded or played, and stores it once", () =>
    Effect.gen(function* () {
      const saved: Array<Cassette.Exchange> = []
      const http = stub((_, call) =>
        Effect.succeed(call === 0 ? Response.json({ a: "é" }) : new Response(null, { status: 204 }))
      )
      const forms = Effect.fnUntraced(function* (client: HttpClient.HttpClient) {
        const said = []
        for (const _ of ["a body", "none"]) {
          const response = yield* client.get("https://x.test/")
          const { byteLength } = yield* response.arrayBuffer
          said.push([byteLength, yield* response.text, yield* response.json])
        }
        return said
      })
      const expected = [
        [10, '{"a":"é"}', { a: "é" }],
        [0, "", null]
      ]
      const recorder = Cassette.recorder(http.client, (exchange) => Effect.sync(() => saved.push(exchange)))
      assert.deepStrictEqual(yield* forms(recorder), expected)
      assert.deepStrictEqual(
        saved.map(({ response }) => [response.status, response.body]),
        [
          [200, '{"a":"é"}'],
          [204, ""]
        ]
      )
      assert.deepStrictEqual(yield* forms(Cassette.player(saved)), expected)
    })
  )

  it.effect("never writes a file that is too large to be read back", () =>
    inFile((file) =>
      Effect.gen(function* () {
        const http = live()
        const files = yield* FileSystem.FileSystem
        const cassette = Cassette.layer({ file, mode: "new" }).pipe(Layer.provide(http.layer))
        yield* Effect.provide(ask("hi"), cassette, { local: true })
        const before = yield* Effect.orDie(files.readFileString(file))
        const limit = before.length + 100
        const { layer, lines } = within(limit)
        yield* Effect.provide(Effect.all([ask("hi"), ask("more")]), Layer.merge(cassette, layer), { local: true })
        assert.strictEqual(http.asked.length, 2)
        assert.deepStrictEqual(lines, [`an exchange was not recorded: '${file}' would be larger than ${limit} bytes`])
        assert.strictEqual(yield* Effect.orDie(files.readFileString(file)), before)
      })
    )
  )

  it.effect("can split a body anywhere, with chunks that join to the body", () =>
    Effect.gen(function* () {
      const body = "data: é\n\ndata: 😀\n\n"
      const exchange: Cassette.Exchange = {
        request: { method: "GET", url: "https://x.test/", headers: {}, body: null },
        response: { status: 200, headers: {}, format: "sse", body, frames: ["data: é", "data: 😀"] }
      }
      const pieces = (cut: Cassette.Cut) =>
        Effect.gen(function* () {
          const response = yield* Cassette.player([exchange], { cut }).get("https://x.test/")
          return yield* Stream.runCollect(response.stream)
        })
      assert.strictEqual((yield* pieces("whole")).length, 1)
      assert.deepStrictEqual(
        (yield* pieces("frames")).map((piece) => new TextDecoder().decode(piece)),
        ["data: é\n\n", "data: 😀\n\n"]
      )
      const bytes = new TextEncoder().encode(body)
      assert.strictEqual((yield* pieces(1)).length, bytes.length)
      assert.deepStrictEqual(
        (yield* pieces([7, 3])).map((piece) => piece.length),
        [7, 3, bytes.length - 10]
      )
      for (const cut of [1, 2, 5, { seed: 4 }, [1, 1]] as const) {
        assert.deepStrictEqual(new Uint8Array(Buffer.concat(yield* pieces(cut))), bytes)
      }
      assert.deepStrictEqual(yield* pieces({ seed: 4 }), yield* pieces({ seed: 4 }))
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import {
  Clock,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Option,
  Redacted,
  Schedule,
  Schema,
  Scope,
  Sink,
  Stdio,
  Stream
} from "effect"
import { Agent, Kernel, Policy, Redaction, Skill, SkillRegistry } from "kernai"
import { McpServe } from "kernai/mcp"
import { MockProvider } from "kernai/testing"
import { spawn } from "node:child_process"
import * as http from "node:http"
import * as net from "node:net"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { frameLength } from "../../src/kit/bounds.ts"
import * as Support from "../support/mcp/connect.ts"
import { noted, offered, skills } from "../support/mcp/offered.ts"
import { quickly } from "../support/longRun.ts"

const script = fileURLToPath(new URL("../support/mcp/offered.ts", import.meta.url))
const bin = fileURLToPath(new URL("../../bin/kernai.mjs", import.meta.url))

/** The official client over a transport, for the time of the scope. */
const official = (transport: Transport) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "oracle", version: "1" })
      await client.connect(transport)
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

const overHttp = ({ token, url }: McpServe.Endpoint) =>
  official(
    new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: token === undefined ? {} : { authorization: `Bearer ${Redacted.value(token)}` } }
    }) as Transport
  )

const registry = SkillRegistry.layer(...skills)
const serve = (options?: McpServe.HttpOptions) => McpServe.http({ name: "offered", skills: offered, ...options })

/** What the official client sees and gets, whatever the way there. */
const works = Effect.fnUntraced(function* (client: Client) {
  assert.strictEqual(client.getServerVersion()?.name, "offered")
  const { tools } = yield* Effect.promise(() => client.listTools())
  assert.deepStrictEqual(
    tools.map((tool) => tool.name),
    offered
  )
  const [greet] = tools
  assert.deepInclude(greet, { name: "greet", description: "Greets" })
  assert.deepStrictEqual(Object.keys(greet!.inputSchema.properties ?? {}), ["name", "loud"])
  assert.deepStrictEqual(greet!.inputSchema.required, ["name"])
  assert.deepInclude(greet!.annotations, { title: "Greeting", readOnlyHint: true, destructiveHint: false })

  const call = (name: string, input: Record<string, unknown> = {}) =>
    Effect.promise(() => client.callTool({ name, arguments: input }))
  assert.deepStrictEqual((yield* call("greet", { name: "<block>" })).content, [{ type: "text", text: "hello <block>" }])
  const rows = yield* call("rows")
  assert.deepStrictEqual(rows.structuredContent, { rows: [1, 2] })
  assert.deepStrictEqual(rows.content, [{ type: "text", text: `{"rows":[1,2]}` }])
  const [dot, image, file, sound, link] = (yield* call("picture")).content as ReadonlyArray<Record<string, unknown>>
  assert.deepStrictEqual(dot, { type: "text", text: "a dot" })
  assert.deepStrictEqual(image, { type: "image", mimeType: "image/png", data: "iVBORw==" })
  assert.deepInclude(file?.["resource"], { mimeType: "application/pdf", blob: "JVBERg==" })
  assert.match(JSON.stringify(file), /"uri":"media:\w/)
  assert.deepStrictEqual(sound, { type: "audio", mimeType: "audio/wav", data: "UklGRg==" })
  assert.deepStrictEqual(link, { type: "text", text: "[image unavailable: image/png]" })

  const misfit = yield* call("greet", { name: 7 })
  assert.isTrue(misfit.isError)
  assert.match(JSON.stringify(misfit.content), /name/)
  assert.notMatch(JSON.stringify(misfit.content), /<block/)
  const failure = yield* call("fail")
  assert.deepStrictEqual(failure, {
    isError: true,
    content: [{ type: "text", text: "no such row; Bearer <redacted>" }]
  })
  const defect = yield* call("break")
  assert.deepStrictEqual(defect.content, [{ type: "text", text: "Skill 'break' failed unexpectedly" }])
  const hidden = yield* Effect.promise(() => client.callTool({ name: "hidden", arguments: {} }).catch((error) => error))
  assert.match(String(hidden), /hidden/)
})

/** A registry is looked at every second: here ten times in one. */
const hurried = <A, E, R>(body: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const sleep: Clock.Clock["sleep"] = (duration) => clock.sleep(Duration.times(duration, 0.1))
    const quick: Clock.Clock = Object.assign(Object.create(clock), { sleep })
    return Effect.provideService(body, Clock.Clock, quick)
  })

const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const

describe("McpServe", () => {
  describe("works with the official client", () => {
    it.live("over standard streams, with logs on the error stream", () =>
      Effect.gen(function* () {
        // The client passes on little of the environment: the process finds what others compiled.
        const env = { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" }
        const transport = new StdioClientTransport({ command: process.execPath, args: [script], env, stderr: "pipe" })
        const client = yield* official(transport as Transport)
        assert.strictEqual(client.getInstructions(), "Be kind")
        yield* works(client)
        const { pid } = transport
        yield* Effect.promise(() => client.close())
        assert.isFalse(Support.isAlive(pid!))
      })
    )

    it.live("over Streamable HTTP, with a new token at every start", () =>
      Effect.gen(function* () {
        const [one, other] = [yield* serve(), yield* serve()]
        assert.notStrictEqual(Redacted.value(one.token!), Redacted.value(other.token!))
        yield* works(yield* overHttp(one))
      }).pipe(Effect.provide(registry))
    )

    it.live.each(quickly(revisions, (revision) => revision === "2025-06-18" || revision === "2026-07-28"))(
      "over Streamable HTTP to kernai's own client of revision %s",
      (protocolVersion) =>
        Effect.gen(function* () {
          const { token, url } = yield* serve()
          const connection = yield* Support.connect({
            url,
            protocolVersion,
            headers: { authorization: `Bearer ${Redacted.value(token!)}` }
          })
          assert.strictEqual((yield* connection.info).protocolVersion, protocolVersion)
          const result = yield* connection.callTool("greet", { name: "you", loud: true })
          assert.strictEqual(Support.textOf(result), "HELLO you")
        }).pipe(Effect.provide([registry, Support.platform]))
    )
  })

  it.live("ends the least recently used session beyond its limit", () =>
    Effect.gen(function* () {
      const served = yield* serve({ sessions: 2 })
      const [first, second] = [yield* overHttp(served), yield* overHttp(served)]
      const list = (client: Client) => Effect.promise(() => client.listTools().then(() => "listed", String))
      // Whoever comes next begins one, and the next but one finds that there are too many.
      yield* overHttp(served)
      assert.strictEqual(yield* list(second), "listed")
      yield* overHttp(served)
      assert.strictEqual(yield* list(second), "listed")
      assert.notStrictEqual(yield* list(first), "listed")
    }).pipe(Effect.provide(registry))
  )

  it.live("interrupts a skill whose call is cancelled", () =>
    Effect.gen(function* () {
      const client = yield* overHttp(yield* serve())
      noted.length = 0
      const call = yield* Effect.forkChild(
        Effect.promise((signal) => client.callTool({ name: "wait", arguments: {} }, undefined, { signal }))
      )
      yield* Support.until(() => noted.includes("waiting"))
      yield* Fiber.interrupt(call)
      yield* Support.until(() => noted.includes("stopped"))
    }).pipe(Effect.provide(registry))
  )

  it.live("answers in time for a skill that ignores interruption (R-15)", () => {
    const stubborn = Skill.make("stubborn", {
      description: "Goes on",
      input: Schema.Struct({}),
      timeout: 50,
      execute: () => Effect.uninterruptible(Effect.never)
    })
    return Effect.gen(function* () {
      const client = yield* overHttp(yield* McpServe.http())
      const answer = yield* Effect.promise(() => client.callTool({ name: "stubborn", arguments: {} }))
      assert.deepStrictEqual(answer, {
        isError: true,
        content: [{ type: "text", text: "Skill 'stubborn' took longer than 50 ms" }]
      })
    }).pipe(Effect.provide(SkillRegistry.layer(stubborn)))
  })

  it.live("follows the registry, and announces changed tools", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const client = yield* overHttp(yield* serve({ skills: "all" }))
      const names = Effect.promise(() => client.listTools().then(({ tools }) => tools.map((tool) => tool.name)))
      const scope = yield* Scope.make()
      const late = Skill.make("late", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed("ok")
      })
      yield* registry.register(late).pipe(Scope.provide(scope))
      yield* Effect.repeat(names, { until: (names) => names.includes("late"), schedule: Schedule.spaced(100) })
      assert.deepStrictEqual((yield* Effect.promise(() => client.callTool({ name: "late" }))).content, [
        { type: "text", text: "ok" }
      ])
      yield* Scope.close(scope, Exit.void)
      assert.notInclude(yield* names, "late")
      const gone = yield* Effect.promise(() => client.callTool({ name: "late" }).catch((error) => error))
      assert.match(String(gone), /late/)
    }).pipe(Effect.provide(registry), hurried)
  )

  it.live("reads the list of offered skills once, however long it is", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 300 }, (_, index) =>
        Skill.make(`skill_${index}`, { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("") })
      )
      let looks = 0
      const names = new Proxy(
        many.map((skill) => skill.name),
        {
          get: (list, key) => {
            looks++
            return Reflect.get(list, key)
          }
        }
      )
      yield* Effect.gen(function* () {
        const client = yield* overHttp(yield* serve({ skills: names }))
        for (let count = 0; count < 3; count++) {
          assert.lengthOf((yield* Effect.promise(() => client.listTools())).tools, many.length)
        }
        assert.isBelow(looks, 5 * many.length)
      }).pipe(Effect.provide(SkillRegistry.layer(...many)))
    })
  )

  it.live("offers no skill with an invalid schema, and still follows the others", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const client = yield* overHttp(yield* McpServe.http())
      const odd = Skill.dynamic("odd", {
        description: "",
        inputSchema: { properties: { a: 5 } },
        execute: () => Effect.succeed("")
      })
      yield* registry.register(odd)
      yield* Effect.sleep("2 seconds")
      yield* registry.register(Skill.dynamic("late", { ...odd, inputSchema: {}, execute: () => Effect.succeed("") }))
      const names = Effect.map(
        Effect.promise(() => client.listTools()),
        ({ tools }) => tools.map((tool) => tool.name)
      )
      const found = yield* Effect.repeat(names, { until: (names) => names.length > 0, schedule: Schedule.spaced(100) })
      assert.deepStrictEqual(found, ["late"])
    }).pipe(Effect.provide(SkillRegistry.layer()), hurried)
  )

  it.live("asks the policy, and refuses calls that need a person", () =>
    Effect.gen(function* () {
      const client = yield* overHttp(yield* serve())
      const call = (name: string) =>
        Effect.promise(() =>
          client.callTool({ name, arguments: {} }).catch((error: unknown) => ({ content: String(error) }))
        )
      assert.deepStrictEqual((yield* call("rows")).content, [{ type: "text", text: "not today" }])
      assert.match(JSON.stringify((yield* call("picture")).content), /are you sure \(a person has to confirm/)
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.notInclude(
        tools.map((tool) => tool.name),
        "break"
      )
      assert.match(JSON.stringify((yield* call("break")).content), /break/)
    }).pipe(
      Effect.provide([
        registry,
        Policy.layer(
          ({ name }) => Effect.succeed(name === "rows" ? Policy.denied("not today") : Policy.confirm("are you sure")),
          (name) => name !== "break"
        )
      ])
    )
  )

  it.live("redacts known secrets in results and failures (S-7)", () => {
    const secret = "plain-hunter2"
    const leak = Skill.make("leak", {
      description: "Leaks",
      input: Schema.Struct({ fails: Schema.Boolean }),
      effects: "read",
      execute: ({ fails }) => (fails ? Effect.fail(`no ${secret}`) : Effect.succeed({ [secret]: `is ${secret}` }))
    })
    return Effect.gen(function* () {
      const client = yield* overHttp(yield* McpServe.http())
      const call = (fails: boolean) => Effect.promise(() => client.callTool({ name: "leak", arguments: { fails } }))
      const answer = yield* call(false)
      assert.deepStrictEqual(answer.structuredContent, { "<redacted>": "is <redacted>" })
      assert.deepStrictEqual(answer.content, [{ type: "text", text: '{"<redacted>":"is <redacted>"}' }])
      assert.deepStrictEqual((yield* call(true)).content, [{ type: "text", text: "no <redacted>" }])
    }).pipe(Effect.provide([SkillRegistry.layer(leak), Redaction.layer({ secrets: [Redacted.make(secret)] })]))
  })

  it.live("offers an agent, with a run for each call", () =>
    Effect.gen(function* () {
      const client = yield* overHttp(yield* McpServe.http())
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.deepInclude(tools[0], { name: "my_agent", description: "Answers" })
      const answer = yield* Effect.promise(() => client.callTool({ name: "my_agent", arguments: { input: "hi" } }))
      assert.deepStrictEqual(answer.content, [{ type: "text", text: "HI" }])
    }).pipe(
      Effect.provide(
        SkillRegistry.layer(
          McpServe.agent(Agent.make({ name: "my agent", description: "Answers", instructions: "", model: "mock" }))
        ).pipe(
          Layer.provide(Kernel.layerMemory),
          Layer.provide([SkillRegistry.layer(), MockProvider.layer(`<block type="final">HI</block>`)])
        )
      )
    )
  )

  it("gives the skill of an agent a valid tool name", () => {
    const agent = Agent.make({ name: `my agent/${"é".repeat(80)}`, instructions: "", model: "mock" })
    assert.strictEqual(McpServe.agent(agent).name, `my_agent_${"_".repeat(55)}`)
  })

  it.live("serves as a layer while its input stays open", () =>
    Effect.gen(function* () {
      const input = Layer.provide(McpServe.layerStdio(), Stdio.layerTest({ stdin: Stream.never }))
      yield* Effect.timeout(Effect.scoped(Layer.build(input)), "2 seconds")
    }).pipe(Effect.provide(registry))
  )

  it.live("provides its endpoint as a layer, and ends with it", () =>
    Effect.gen(function* () {
      const url = yield* Effect.gen(function* () {
        const endpoint = yield* McpServe.McpServe
        const client = yield* overHttp(endpoint)
        const { tools } = yield* Effect.promise(() => client.listTools())
        assert.strictEqual(tools.length, skills.length)
        return endpoint.url
      }).pipe(Effect.scoped, Effect.provide(McpServe.layerHttp().pipe(Layer.provide(registry))))
      yield* Effect.flip(Effect.tryPromise(() => fetch(url)))
    })
  )

  describe("admits only some requests (S-13)", () => {
    /** A request exactly as it is written, which fetch would not send. */
    const send = (
      { token, url }: McpServe.Endpoint,
      headers: http.OutgoingHttpHeaders,
      method = "POST",
      path = new URL(url).pathname
    ) =>
      Effect.promise(
        () =>
          new Promise<number>((resolve, reject) => {
            const { hostname, port } = new URL(url)
            const asked = http.request({ hostname, port, method, path, agent: false }, (response) => {
              response.resume()
              resolve(response.statusCode ?? 0)
            })
            asked.on("error", reject)
            const json = { "content-type": "application/json", accept: "application/json, text/event-stream" }
            const bearer = token === undefined ? {} : { authorization: `Bearer ${Redacted.value(token)}` }
            for (const [name, value] of Object.entries({ ...json, ...bearer, ...headers })) {
              if (value !== undefined) asked.setHeader(name, value)
            }
            asked.end(method === "POST" ? `{"jsonrpc":"2.0","id":1,"method":"ping"}` : undefined)
          })
      )

    it.live("with the right host, origin, content type and token", () =>
      Effect.gen(function* () {
        const endpoint = yield* serve()
        const { port } = new URL(endpoint.url)
        const refused: ReadonlyArray<readonly [http.OutgoingHttpHeaders, number, string?, string?]> = [
          [{ host: `evil.example:${port}` }, 403],
          [{ host: "127.0.0.1" }, 403],
          [{ host: `127.0.0.1.evil.example:${port}` }, 403],
          [{ origin: "https://evil.example" }, 403],
          [{ origin: "null" }, 403],
          [{ origin: "http://127.0.0.1:1" }, 403],
          [{ origin: `https://127.0.0.1:${port}` }, 403],
          [{ "content-type": "application/json; charset=utf-16le" }, 415],
          [{ "content-type": 'application/json;charset="iso-8859-1"' }, 415],
          [{ "content-type": "text/plain" }, 403],
          [{ "content-type": "text/plain; charset=application/json" }, 403],
          [{ "access-control-request-method": "POST", origin: "https://evil.example" }, 403, "OPTIONS"],
          [{}, 403, "OPTIONS"],
          [{ host: `evil.example:${port}` }, 403, "GET", "/"],
          [{ origin: "https://evil.example" }, 403, "GET", "/nothing"],
          [{ authorization: undefined }, 401],
          [{ authorization: "Bearer wrong" }, 401],
          [{ authorization: undefined }, 401, "GET", "/"],
          [{}, 404, "GET", "/nothing"]
        ]
        for (const [headers, status, method, path] of refused) {
          assert.strictEqual(
            yield* send(endpoint, headers, method, path),
            status,
            JSON.stringify([headers, method, path])
          )
        }
        assert.strictEqual(yield* send(endpoint, { host: `LOCALHOST:${port}` }), 400, "it may ask, but has no session")
        const own = [`http://127.0.0.1:${port}`, `http://localhost:${port}`]
        for (const origin of own) assert.strictEqual(yield* send(endpoint, { origin }), 400, origin)
        const utf8 = { "content-type": "application/json; charset=UTF-8" }
        assert.strictEqual(yield* send(endpoint, utf8), 400)
      }).pipe(Effect.provide(registry))
    )

    it.live("and none with two Host headers, whichever comes first", () =>
      Effect.gen(function* () {
        const { token, url } = yield* serve()
        const { host, pathname, port } = new URL(url)
        const bearer = token === undefined ? "" : Redacted.value(token)
        const answer = (hosts: ReadonlyArray<string>) =>
          Effect.promise(async () => {
            const socket = net.connect(Number(port), "127.0.0.1")
            const head = [`POST ${pathname} HTTP/1.1`, ...hosts.map((name) => `Host: ${name}`)]
            const rest = [`Authorization: Bearer ${bearer}`, "Content-Type: application/json", "Content-Length: 2"]
            socket.end([...head, ...rest, "", "{}"].join("\r\n"))
            return await text(socket)
          })
        for (const hosts of [
          [host, "evil.example"],
          ["evil.example", host],
          [host, host]
        ]) {
          const answered = yield* answer(hosts)
          assert.match(answered, /^HTTP\/1.1 400 .*the Host header is repeated$/s)
        }
      }).pipe(Effect.provide(registry))
    )

    it.live("and challenges for the token when only that is missing", () =>
      Effect.gen(function* () {
        const { url } = yield* serve()
        const ask = (headers: Record<string, string>) =>
          Effect.map(
            Effect.promise(() => fetch(url, { method: "POST", headers })),
            (response) => response.headers.get("www-authenticate")
          )
        assert.strictEqual(yield* ask({}), "Bearer")
        assert.isNull(yield* ask({ origin: "https://evil.example" }))
      }).pipe(Effect.provide(registry))
    )

    it.live("and explains each refusal", () =>
      Effect.gen(function* () {
        const { token, url } = yield* serve()
        const bearer = { authorization: `Bearer ${token === undefined ? "" : Redacted.value(token)}` }
        const said = (headers: http.OutgoingHttpHeaders, method = "POST") =>
          Effect.promise(
            () =>
              new Promise<string>((resolve, reject) => {
                const asked = http.request(url, { method, agent: false, headers }, (response) => {
                  text(response).then((body) => resolve(`${response.headers["content-type"]}: ${body}`), reject)
                })
                asked.on("error", reject)
                asked.end()
              })
          )
        const plain = "text/plain: "
        const hosts = "the Host header does not name this server; 'hosts' (--allow-host) adds names"
        assert.strictEqual(yield* said({ ...bearer, host: "mcp.example" }), plain + hosts)
        const origins = "pages of this origin are not admitted; 'origins' adds origins"
        assert.strictEqual(yield* said({ ...bearer, origin: "https://evil.example" }), plain + origins)
        assert.strictEqual(yield* said(bearer, "OPTIONS"), `${plain}a preflight request needs an Origin header`)
        const json = "the body must be application/json"
        assert.strictEqual(yield* said({ ...bearer, "content-type": "text/plain" }), plain + json)
        const missing = "the token is missing or wrong; send 'Authorization: Bearer TOKEN'"
        assert.strictEqual(yield* said({ "content-type": "application/json" }), plain + missing)
      }).pipe(Effect.provide(registry))
    )

    it.live("and those with configured origins and hosts", () =>
      Effect.gen(function* () {
        const endpoint = yield* serve({ origins: ["https://app.example"], hosts: ["App.example"], token: "none" })
        assert.strictEqual(yield* send(endpoint, { host: "app.Example", origin: "https://app.example" }), 400)
        assert.strictEqual(yield* send(endpoint, { origin: "https://evil.example" }), 403)
      }).pipe(Effect.provide(registry))
    )

    it.live("and requires a token when it is not on loopback", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(serve({ host: "0.0.0.0", token: "none" }))
        assert.strictEqual(error.message, "a server on '0.0.0.0' needs a token: it is not loopback")
      }).pipe(Effect.provide(registry))
    )
  })

  it.live("leaves no socket and no timer when its scope closes (R-15)", () =>
    Effect.gen(function* () {
      // The servers of the tests before are collected by the next turns.
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(() => setImmediate(resolve))))
      const before = process.getActiveResourcesInfo().filter((kind) => kind === "TCPServerWrap").length
      const endpoint = yield* Effect.scoped(
        Effect.gen(function* () {
          const endpoint = yield* serve()
          const client = yield* overHttp(endpoint)
          yield* Effect.promise(() => client.listTools())
          return endpoint
        })
      )
      assert.strictEqual(process.getActiveResourcesInfo().filter((kind) => kind === "TCPServerWrap").length, before)
      const refused = yield* Effect.promise(() =>
        fetch(endpoint.url).then(
          () => "answered",
          () => "refused"
        )
      )
      assert.strictEqual(refused, "refused")
    }).pipe(Effect.provide(registry))
  )

  it.live("ends when a client sends a line beyond the limit (S-13)", () =>
    Effect.gen(function* () {
      const parts = ["{", "a".repeat(frameLength / 2), "b".repeat(frameLength / 2)].map((text) =>
        new TextEncoder().encode(text)
      )
      const stdin = Stream.concat(Stream.fromIterable(parts), Stream.never)
      yield* Effect.timeout(Effect.provide(McpServe.stdio(), Stdio.layerTest({ stdin })), "2 seconds")
    }).pipe(Effect.provide(registry))
  )

  it.live("continues when many lines together are longer than the limit", () =>
    Effect.gen(function* () {
      const pad = "x".repeat(frameLength / 8)
      const line = new TextEncoder().encode(`{"jsonrpc":"2.0","method":"notifications/x","params":{"pad":"${pad}"}}\n`)
      const stdin = Stream.concat(Stream.fromIterable(Array(10).fill(line)), Stream.never)
      const served = Effect.provide(McpServe.stdio(), Stdio.layerTest({ stdin }))
      assert.isTrue(Option.isNone(yield* Effect.timeoutOption(served, "300 millis")))
    }).pipe(Effect.provide(registry))
  )

  describe("over streams", () => {
    const initialize = {
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "pipe", version: "1" } }
    }
    const calling = (name: string) => ({ id: 2, method: "tools/call", params: { name, arguments: {} } })
    const given = (message: object) =>
      Stream.succeed(new TextEncoder().encode(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`))
    const opened = Stream.concat(given(initialize), given({ method: "notifications/initialized" }))
    const decoder = new TextDecoder()
    const serving = (stdin: Stream.Stream<Uint8Array>, output: Array<string>, options?: McpServe.Options) => {
      const stdout = () =>
        Sink.forEach((chunk: string | Uint8Array) =>
          Effect.sync(() => void output.push(typeof chunk === "string" ? chunk : decoder.decode(chunk)))
        )
      return Effect.provide(McpServe.stdio(options), Stdio.layerTest({ stdin, stdout })).pipe(Effect.scoped)
    }

    it.live("announces each change of the offered tools, and no other", () =>
      Effect.gen(function* () {
        const registry = yield* SkillRegistry.SkillRegistry
        const output: Array<string> = []
        const stdin = Stream.concat(opened, Stream.never)
        yield* Effect.forkChild(serving(stdin, output, { skills: ["greet", "late"] }))
        yield* Support.until(() => output.join("").includes(`"id":1`))
        yield* Effect.sleep("3 seconds")
        output.length = 0
        const told = () => output.join("").split("notifications/tools/list_changed").length - 1
        const comesAndGoes = Effect.fnUntraced(function* (name: string, changes: number) {
          const before = told()
          const scope = yield* Scope.make()
          const input = Schema.Struct({})
          const skill = Skill.make(name, { description: "", input, execute: () => Effect.succeed("") })
          yield* Scope.provide(registry.register(skill), scope)
          yield* Support.until(() => told() >= before + changes)
          yield* Effect.sleep("2 seconds")
          const came = told()
          yield* Scope.close(scope, Exit.void)
          yield* Support.until(() => told() >= came + changes)
          yield* Effect.sleep("2 seconds")
          return [came, told()]
        })
        assert.deepStrictEqual(yield* comesAndGoes("late", 1), [1, 2])
        assert.deepStrictEqual(yield* comesAndGoes("other", 0), [2, 2])
        assert.deepStrictEqual(yield* comesAndGoes("late", 1), [3, 4])
      }).pipe(Effect.provide(registry), hurried)
    )

    it.live("answers the messages that arrive with lines that are none, in one chunk or across chunks", () =>
      Effect.gen(function* () {
        const message = (id: number) => JSON.stringify({ jsonrpc: "2.0", ...calling("greet"), id })
        const rubbish = [
          "{oops",
          "7",
          "null",
          '"text"',
          "not json {",
          "\u0000",
          "{]",
          `{"x":${"[".repeat(200)}`,
          "\r",
          "é"
        ]
        const bytes = rubbish.map((line, at) => {
          const id = 10 + at * 3
          return new TextEncoder().encode(
            `${message(id)}\n${line}\n${message(id + 1)}\r\n${line}\n${message(id + 2)}\n`
          )
        })
        const halves = bytes.flatMap((chunk) => [chunk.slice(0, chunk.length / 3), chunk.slice(chunk.length / 3)])
        for (const chunks of [bytes, halves]) {
          const output: Array<string> = []
          yield* serving(Stream.concat(opened, Stream.fromIterable(chunks)), output)
          const answered = output
            .join("")
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line))
          assert.deepStrictEqual(
            answered.flatMap(({ id, result }) => (result?.content === undefined ? [] : [id])).toSorted((a, b) => a - b),
            Array.from({ length: 3 * rubbish.length }, (_, at) => 10 + at)
          )
        }
      }).pipe(Effect.provide(registry))
    )

    it.live("waits for a slow call when its input ends", () => {
      const slow = Skill.make("slow", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.as(Effect.sleep("300 millis"), "at last")
      })
      return Effect.gen(function* () {
        const output: Array<string> = []
        yield* serving(Stream.concat(opened, given(calling("slow"))), output)
        assert.match(output.join(""), /at last/)
      }).pipe(Effect.provide(SkillRegistry.layer(slow)))
    })
  })

  it.live("as 'kernai mcp serve' answers all requests before the input ended, and then exits", () =>
    Effect.promise(
      () =>
        new Promise<void>((resolve, reject) => {
          const child = spawn(process.execPath, [bin, "mcp", "serve"], { stdio: ["pipe", "pipe", "ignore"] })
          let output = ""
          child.stdout.on("data", (chunk) => (output += chunk))
          child.on("exit", (code) => {
            try {
              const answers = output
                .trim()
                .split("\n")
                .map((line) => JSON.parse(line))
              assert.deepStrictEqual(
                answers.map(({ id }) => id),
                [1, 2]
              )
              assert.strictEqual(answers[1].result.content[0].text, "42")
              assert.strictEqual(code, 0)
              resolve()
            } catch (error) {
              reject(error)
            }
          })
          const messages = [
            {
              id: 1,
              method: "initialize",
              params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "pipe", version: "1" } }
            },
            { method: "notifications/initialized" },
            { id: 2, method: "tools/call", params: { name: "calculator", arguments: { expression: "6 * 7" } } }
          ]
          child.stdin.end(messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join(""))
        })
    )
  )
})

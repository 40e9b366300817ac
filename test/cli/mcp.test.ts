import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { ConfigProvider, Effect, Fiber } from "effect"
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { answer } from "../../src/cli/mcp/scriptedRun.ts"
import { program } from "../../src/cli/rootCommand.ts"
import { command, final } from "../support/blocks.ts"
import * as Guard from "../support/mcp/authorization.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Hub from "../support/mcp/hub.ts"
import { kernai, memoryScreen, ollama, start } from "./support.ts"

const example = "examples/mcp.yml"

/** Creates a folder for the data of commands, and a config with servers. */
const place = Effect.fnUntraced(function* (servers: { readonly [name: string]: unknown }) {
  const folder = path.dirname(yield* Support.sideFile)
  const config = path.join(folder, "mcp.yml")
  fs.writeFileSync(config, JSON.stringify({ servers }))
  return { folder, config }
})

/** Calls a command that stores its data in a folder. */
const kernaiIn = (folder: string, ...args: ReadonlyArray<string>) => kernai(args, { env: { XDG_DATA_HOME: folder } })

/** Makes the input a terminal for the time of the scope. */
const atTerminal = Effect.acquireRelease(
  Effect.sync(() => {
    const { isTTY } = process.stdin
    process.stdin.isTTY = true
    return isTTY
  }),
  (isTTY) =>
    Effect.sync(() => {
      process.stdin.isTTY = isTTY
    })
)

/** The address of a server, and the header that it needs. */
interface Served {
  readonly url: string
  readonly authorization: string
}

/** Serves HTTP in this process for the time of the scope. `env` is the whole environment. */
const served = Effect.fnUntraced(function* (
  flags: ReadonlyArray<string>,
  env: { readonly [name: string]: string } = {}
) {
  const screen = memoryScreen()
  yield* program(["mcp", "serve", "--http", ...flags]).pipe(
    Effect.provide(screen.layer),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
    Effect.forkScoped
  )
  yield* Support.until(() => screen.out().includes("Bearer"))
  const [url = "", header = ""] = screen.out().trim().split("\n")
  return { url, authorization: header.replace("Authorization: ", "") }
})

/** Connects the client of the official SDK. */
const connected = ({ authorization, url }: Served) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "oracle", version: "1" })
      const requestInit = { headers: { authorization } }
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }) as Transport)
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

describe("kernai run --mcp", () => {
  it.live("reads a file through a real server and translates its first line, without a key", () =>
    Effect.gen(function* () {
      const { folder } = yield* place({})
      const ran = yield* kernaiIn(folder, "run", "--mcp", example)
      assert.strictEqual(ran.error, "")
      assert.strictEqual(ran.out, `${answer}\n`)
      assert.match(ran.progress, /^scripted model: no key is needed/)
      assert.match(ran.progress, /protocol {2}mcp {2}.*Bonjour, petit monde\./)
      assert.match(ran.progress, /skill {5}translate {2}.*Hello, little world\./)
    })
  )

  it.live("offers a model the tools of servers, and only those with --no-skills", () =>
    Effect.gen(function* () {
      const { authorization, url } = yield* served([])
      const { config, folder } = yield* place({ one: { transport: "http", url, headers: { authorization } } })
      const { asked, env } = yield* ollama(() => "Done.")
      const flags = ["--model", "ollama/x", "--dialect", "tools", "--no-skills", "--quiet"]
      const ran = yield* kernai(["run", "--mcp", config, ...flags, "Hi?"], { env: { ...env, XDG_DATA_HOME: folder } })
      assert.deepInclude(ran, { code: 0, out: "Done.\n" })
      const { tools } = JSON.parse(asked[0]?.body ?? "")
      assert.include(JSON.stringify(tools), '"mcp_one__calculator"')
      assert.notInclude(JSON.stringify(tools), '"calculator"')
    })
  )

  it.live(
    "offers an agent the servers of its file, also those that npx starts",
    () =>
      Effect.gen(function* () {
        const { folder } = yield* place({})
        const agent = path.join(folder, "agent.yaml")
        const servers = { every: { command: "npx", args: ["-y", "@modelcontextprotocol/server-everything"] } }
        fs.writeFileSync(
          agent,
          `name: clerk\nsystem_prompt: You help.\nmodel: ollama/x\nmcpServers: ${JSON.stringify(servers)}\n`
        )
        const { asked, env } = yield* ollama((body) =>
          body.includes("Echo: hello") ? final("It says hello.") : command("mcp_every__echo", { message: "hello" })
        )
        const store = ["--store", path.join(folder, "runs.db")]
        const environment = { ...env, XDG_DATA_HOME: folder }
        const ran = yield* kernai(["run", "--create", "-a", agent, "--yes", ...store, "--json", "Echo"], {
          env: environment
        })
        assert.strictEqual(ran.code, 0, ran.error)
        const { agent: name, runId, text } = JSON.parse(ran.out)
        assert.deepStrictEqual([name, text], ["clerk", "It says hello."])
        assert.notInclude(asked[0]?.body, "calculator")
        const replayed = yield* kernai(["runs", "replay", runId, ...store], { env: environment })
        assert.include(replayed.out, "no difference: ", replayed.error)
        const listed = yield* kernaiIn(folder, "mcp", "list", "--mcp", agent)
        assert.match(listed.out, /^every {2}.*\n {2}echo /m)
      }),
    120_000
  )

  it.live("reports the problem of a config or a server in one line", () =>
    Effect.gen(function* () {
      const { config, folder } = yield* place({ files: { command: "kernai-no-such-program" } })
      const missing = yield* kernaiIn(folder, "run", "--mcp", path.join(folder, "other.yml"))
      assert.deepStrictEqual([missing.code, missing.out], [2, ""])
      assert.match(missing.error, /other\.yml' cannot be read \(NotFound\)/)
      const away = yield* kernaiIn(folder, "run", "--mcp", config)
      assert.strictEqual(away.code, 1)
      assert.match(away.error, /only knows examples\/mcp\.yml.*'kernai-no-such-program' cannot be started/)
      const both = yield* kernaiIn(folder, "run", "--mcp", config, "--replay", "openai_scenario_weather")
      assert.strictEqual(both.code, 2)
    })
  )
})

describe("kernai mcp", () => {
  it.live("lists servers and tools, as text and as JSON", () =>
    Effect.gen(function* () {
      const server = yield* Hub.scripted({
        tools: [Hub.tool("say", { description: "Says\u202e it" }), Hub.tool("see")]
      })
      const { config, folder } = yield* place({ one: server.settings, away: { command: "kernai-no-such-program" } })
      const people = yield* kernaiIn(folder, "mcp", "list", "--mcp", config)
      assert.strictEqual(people.code, 1)
      assert.include(people.error, "not available: away")
      assert.match(people.out, /^one {2}scripted 0, revision 2025-11-25\n {2}say {2}Says\\u\{202e\} it\n {2}see\n/)
      assert.match(people.out, /^away {2}unavailable: .*cannot be started/m)
      const machines = yield* kernaiIn(folder, "mcp", "list", "one", "--mcp", config, "--json")
      const [one, ...others] = JSON.parse(machines.out)
      assert.deepStrictEqual(others, [])
      assert.deepInclude(one, { name: "one", state: "connected", skills: { say: "mcp_one__say", see: "mcp_one__see" } })
      const unknown = yield* kernaiIn(folder, "mcp", "list", "two", "--mcp", config)
      assert.strictEqual(unknown.code, 2)
      assert.match(unknown.error, /there is no server 'two' in .*; there are: one, away/)
    })
  )

  it.live("calls a tool, and ends with 1 when the tool fails", () =>
    Effect.gen(function* () {
      const server = yield* Hub.scripted({
        tools: [Hub.tool("read"), Hub.tool("lose")],
        results: { read: Hub.said("Bonjour, petit monde."), lose: { ...Hub.said("no such file"), isError: true } }
      })
      const { config, folder } = yield* place({ files: server.settings })
      const read = yield* kernaiIn(folder, "mcp", "call", "files", "read", `{"path":"letter.txt"}`, "--mcp", config)
      assert.deepStrictEqual([read.code, read.out], [0, "Bonjour, petit monde.\n"])
      assert.deepStrictEqual(server.calls(), [
        `{"name":"read","arguments":{"path":"letter.txt"},"_meta":{"progressToken":"call-1"}}`
      ])
      const lost = yield* kernaiIn(folder, "mcp", "call", "files", "lose", "--mcp", config)
      assert.deepStrictEqual([lost.code, lost.out], [1, "no such file\n"])
      const json = yield* kernaiIn(folder, "mcp", "call", "files", "lose", "--mcp", config, "--json")
      assert.isTrue(JSON.parse(json.out).isError)
      const words = yield* kernaiIn(folder, "mcp", "call", "files", "read", "letter.txt", "--mcp", config)
      assert.deepStrictEqual([words.code, words.out], [2, ""])
      assert.match(words.error, /the input of a tool is a JSON object/)
      const tool = yield* kernaiIn(folder, "mcp", "call", "files", "nix", "--mcp", config)
      assert.strictEqual(tool.code, 1)
      assert.match(tool.error, /tool not found: nix \(server=files\)/)
    })
  )

  it.live("hides tools that changed until a person approves one or all of them (S-8)", () =>
    Effect.gen(function* () {
      const tools = (more: string) =>
        ["say", "see"].map((name) => Hub.tool(name, { description: `Can ${name}${more}` }))
      const script = { tools: tools(""), results: { say: Hub.said("hi") } }
      const server = yield* Hub.scripted(script)
      const { config, folder } = yield* place({ one: server.settings })
      const say = () => kernaiIn(folder, "mcp", "call", "one", "say", "--mcp", config)
      assert.strictEqual((yield* say()).out, "hi\n")
      server.change({ ...script, tools: tools(", and tells others") })
      const hidden = yield* say()
      assert.strictEqual(hidden.code, 1)
      assert.match(hidden.error, /'say' .* is hidden, because its definition changed/)
      assert.match(
        (yield* kernaiIn(folder, "mcp", "list", "--mcp", config)).out,
        /say {2}hidden, changed: kernai mcp approve one say\n.*see {2}hidden, changed: kernai mcp approve one see\n$/
      )
      const approve = (...tool: ReadonlyArray<string>) =>
        kernaiIn(folder, "mcp", "approve", "one", ...tool, "--mcp", config)
      assert.deepInclude(yield* approve("say"), { code: 0, out: "say  Can say, and tells others\n" })
      assert.strictEqual((yield* say()).out, "hi\n")
      assert.deepInclude(yield* approve(), { code: 0, out: "see  Can see, and tells others\n" })
      assert.strictEqual((yield* approve()).code, 2)
    })
  )

  it.live("signs in once for all later commands", () =>
    Effect.gen(function* () {
      const guard = new Guard.Guard()
      const server = yield* Guard.serve(guard)
      const { config, folder } = yield* place({ one: { url: server.url() } })
      const write = () => kernaiIn(folder, "mcp", "call", "one", "write", "--mcp", config)
      const before = yield* write()
      assert.strictEqual(before.code, 1)
      assert.match(before.error, /MCP server 'one' needs a sign-in/)
      const doctor = yield* kernaiIn(folder, "mcp", "doctor", "--mcp", config)
      assert.match(doctor.out, /Sign in: kernai mcp sign-in one/)

      const screen = memoryScreen()
      const signing = yield* program(["mcp", "sign-in", "one", "--mcp", config]).pipe(
        Effect.provide(screen.layer),
        Effect.provideService(
          ConfigProvider.ConfigProvider,
          ConfigProvider.fromEnv({ env: { XDG_DATA_HOME: folder } })
        ),
        Effect.forkChild
      )
      yield* Support.until(() => screen.out().includes("http"))
      yield* Guard.browse(/http\S+/.exec(screen.out())![0])
      yield* Fiber.join(signing)
      assert.match(screen.out(), /signed in to one\n$/)
      assert.strictEqual((yield* write()).out, "1\n")
      assert.match(
        (yield* kernaiIn(folder, "mcp", "doctor", "--mcp", config)).out,
        /^ok +one {2}small 1, streamable_http/
      )
    })
  )

  it.live("asks for a further sign-in during a call on a terminal, and fails elsewhere", () =>
    Effect.gen(function* () {
      const guard = new Guard.Guard()
      const server = yield* Guard.serve(guard)
      const { config, folder } = yield* place({ one: { url: server.url() } })
      const screen = memoryScreen()
      const kernaiHere = (...args: ReadonlyArray<string>) =>
        program(["mcp", ...args, "--mcp", config]).pipe(
          Effect.provide(screen.layer),
          Effect.provideService(
            ConfigProvider.ConfigProvider,
            ConfigProvider.fromEnv({ env: { XDG_DATA_HOME: folder } })
          )
        )
      const signing = yield* Effect.forkChild(kernaiHere("sign-in", "one"))
      yield* Support.until(() => screen.out().includes("http"))
      yield* Guard.browse(/http\S+/.exec(screen.out())![0])
      yield* Fiber.join(signing)
      guard.needs.set("write", "files:write")
      const away = yield* kernaiIn(folder, "mcp", "call", "one", "write", "--mcp", config)
      assert.deepStrictEqual([away.code, away.out], [1, ""])
      assert.match(away.error, /MCP server 'one' needs a sign-in that allows "files:write"/)

      yield* atTerminal
      const calling = yield* Effect.forkChild(kernaiHere("call", "one", "write"))
      yield* Support.until(() => screen.error().includes("http"))
      yield* Guard.browse(/http\S+/.exec(screen.error())![0])
      yield* Fiber.join(calling)
      assert.match(screen.out(), /signed in to one\n1\n$/)
    })
  )

  it.live("reports the problems of a config, and ends with 1", () =>
    Effect.gen(function* () {
      const { config, folder } = yield* place({ a: { transport: "http" }, b: { command: "kernai-no-such-program" } })
      const server = yield* Hub.scripted({ tools: [Hub.tool("say")] })
      const good = yield* place({ files: server.settings })
      const ran = yield* kernaiIn(folder, "mcp", "doctor", "--mcp", config)
      assert.deepStrictEqual([ran.code, ran.error], [1, "kernai: 2 problems found\n"])
      assert.strictEqual(
        ran.out,
        [
          "wrong   a  http server 'a' missing 'url'",
          "        Write the address, as in: url: https://example.com/mcp",
          "wrong   b  the program 'kernai-no-such-program' of MCP server 'b' is not found in PATH",
          "        Install it, or write its path in full.",
          ""
        ].join("\n")
      )
      const fine = yield* kernaiIn(folder, "mcp", "doctor", "--mcp", good.config, "--json")
      assert.deepStrictEqual(
        JSON.parse(fine.out).map(({ server, state }: { server: string; state: string }) => [server, state]),
        [["files", "ok"]]
      )
    })
  )

  it.live("serves skills over HTTP to clients with the token that use an allowed name", () =>
    Effect.gen(function* () {
      const { folder } = yield* place({})
      const server = yield* served([
        "--allow-host",
        "tools.test",
        "--allow-host",
        "tools.test:80",
        "--allow-origin",
        "https://app.test"
      ])
      const client = yield* connected(server)
      const sum = yield* Effect.promise(() =>
        client.callTool({ name: "calculator", arguments: { expression: "6 * 7" } })
      )
      assert.deepStrictEqual(sum.content, [{ type: "text", text: "42" }])
      const askedAs = (host: string, origin?: string) =>
        Effect.callback<number | undefined>((resume) => {
          http.get(server.url, { headers: { host, ...(origin && { origin }) } }, (response) =>
            resume(Effect.succeed(response.resume().statusCode))
          )
        })
      assert.strictEqual(yield* askedAs("tools.test"), 401)
      assert.strictEqual(yield* askedAs("tools.test:80"), 401)
      assert.strictEqual(yield* askedAs("other.test"), 403)
      assert.strictEqual(yield* askedAs("tools.test", "https://app.test"), 401)
      assert.strictEqual(yield* askedAs("tools.test", "https://other.test"), 403)
      for (const flags of [
        ["--http", "--port", "99999"],
        ["--port", "80"],
        ["--host", "127.0.0.1"],
        ["--allow-host", "tools.test"],
        ["--allow-origin", "https://app.test"],
        ["--system", "x"]
      ]) {
        const refused = yield* kernaiIn(folder, "mcp", "serve", ...flags)
        assert.deepStrictEqual([refused.code, refused.out], [2, ""], flags.join(" "))
      }
      const broken = yield* kernaiIn(folder, "mcp", "serve", "--skills-from", path.join(folder, "mcp.yml"))
      assert.deepStrictEqual([broken.code, broken.out], [2, ""])
      assert.match(broken.error, /^kernai: .*mcp\.yml.*\n$/)
      // An address for documentation (RFC 5737).
      const elsewhere = yield* kernaiIn(folder, "mcp", "serve", "--http", "--host", "192.0.2.1")
      assert.deepStrictEqual([elsewhere.code, elsewhere.out], [2, ""])
      assert.include(elsewhere.error, "cannot listen on 192.0.2.1, port 0 (EADDRNOTAVAIL)")
    })
  )

  it.live("serves an agent with the skills as one tool", () =>
    Effect.gen(function* () {
      const { asked, env } = yield* ollama((body) =>
        body.includes(">42<") ? final("It is 42.") : command("calculator", { expression: "6 * 7" })
      )
      const client = yield* connected(yield* served(["--model", "ollama/x", "--system", "Be brief."], env))
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.deepStrictEqual(
        tools.map(({ description, name }) => [name, description]),
        [["kernai", "An agent with the model ollama/x: tell it what to do, and it answers"]]
      )
      const answer = yield* Effect.promise(() => client.callTool({ name: "kernai", arguments: { input: "6 * 7?" } }))
      assert.deepStrictEqual(answer.content, [{ type: "text", text: "It is 42." }])
      assert.include(asked[0]?.body, "Be brief.")
      assert.lengthOf(asked, 2)
    })
  )

  const signals: ReadonlyArray<NodeJS.Signals> = ["SIGTERM", "SIGHUP"]
  it.live.each(signals)("leaves no server running when %s ends it during a call (R-15, R-17)", (signal) =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const { config, folder } = yield* place({ h: Support.node(Support.hostileScript, "", side) })
      const called = yield* start(["mcp", "call", "h", "wait", "--mcp", config], { env: { XDG_DATA_HOME: folder } })
      yield* Support.until(() => Support.lines(side).some((line) => line.startsWith("waiting")))
      const pid = Number(Support.lines(side)[0]!.split(" ")[1])
      assert.isTrue(Support.isAlive(pid))
      called.kill(signal)
      assert.strictEqual((yield* called.ended).code, 130)
      assert.isFalse(Support.isAlive(pid))
      assert.isTrue(Support.lines(side).some((line) => line.startsWith("cancelled")))
    })
  )
})

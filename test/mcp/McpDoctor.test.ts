import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { McpDoctor } from "kernai/mcp"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Support from "../support/mcp/connect.ts"
import * as Guard from "../support/mcp/authorization.ts"
import * as Http from "../support/mcp/httpServer.ts"

const examine = (servers: { readonly [name: string]: unknown }) => McpDoctor.examine(JSON.stringify({ servers }))

/** The finding about one server that is configured like this. */
const about = (settings: unknown) =>
  Effect.map(examine({ files: settings }), (findings) => {
    const wrong = findings.find(({ state }) => state === "wrong")
    assert.strictEqual(wrong?.server, "files")
    return wrong!
  })

/** A web server that gives everybody the same answer. */
const answering = (status: number, body: string, type = "text/html") =>
  Effect.map(
    Http.serve((_, response) => void response.writeHead(status, { "content-type": type }).end(body)),
    (server) => server.url()
  )

const script = (code: string) => ({ command: process.execPath, args: ["-e", code], connectTimeout: "300 millis" })
const { command, args } = Support.node(Support.hostileScript)

layer(Support.platform, { excludeTestServices: true, timeout: "20 seconds" })("McpDoctor", (it) => {
  describe("names the fault and the remedy of", () => {
    const broken: ReadonlyArray<readonly [string, unknown, RegExp, RegExp?]> = [
      ["an entry that is not a mapping", "npx server", /^MCP server 'files' must be a mapping$/],
      ["no command", { transport: "stdio" }, /^stdio server 'files' missing 'command'$/, /command: node server\.js/],
      ["no address", { transport: "http" }, /^http server 'files' missing 'url'$/, /url: https:\/\//],
      ["an unknown transport", { transport: "ftp", url: "ftp://h" }, /'files': "ftp"$/, /stdio, streamable_http/],
      ["an invalid address", { url: "file:///etc" }, /'url' of MCP server 'files' must be an http or https address/],
      [
        "a variable that is not set",
        { command: "node", args: ["${KERNAI_TEST_NOT_SET}"] },
        /'args\[0\]' of MCP server 'files' asks for \$\{KERNAI_TEST_NOT_SET\}, but KERNAI_TEST_NOT_SET is not set/,
        /^Set KERNAI_TEST_NOT_SET/
      ],
      ["a quote that is never closed", { command: "node 'server.js" }, /has a quote that is never closed$/],
      [
        "a duration without a unit",
        { command: "node", timeout: 30 },
        /'timeout' of MCP server 'files' must be a duration/
      ],
      ["an unknown revision", { command: "node", protocolVersion: "2020-01-01" }, /must be one of 2024-11-05, /],
      [
        "a program that is not installed",
        { command: "kernai-no-such-program --stdio" },
        /^the program 'kernai-no-such-program' of MCP server 'files' is not found in PATH$/,
        /^Install it/
      ],
      ["a program path that is wrong", { command: "./no/such/program" }, /'\.\/no\/such\/program' .* does not exist$/],
      ["a missing folder", { command, args, cwd: "/no/such" }, /the folder '\/no\/such' in 'cwd' .* does not exist/],
      [
        "a missing script",
        { command, args: ["/no/such/script.js"] },
        /cannot connect to MCP server 'files': the server exited with code 1; it wrote: Error: Cannot find module/,
        /^Start it by hand/
      ],
      [
        "a program that is not an MCP server",
        script("setInterval(() => {}, 1000)"),
        /'files' did not answer initialize in time/,
        /raise 'connectTimeout'/
      ],
      [
        "a server of an unknown revision",
        { command, args: [...args, "future"] },
        /speaks no revision of the protocol that kernai knows/,
        /^Set 'protocolVersion'/
      ],
      ["a header no request can carry", { url: "http://127.0.0.1/mcp", headers: { key: "a\nb" } }, /the header 'key'/],
      ["an unknown host", { url: "http://kernai.invalid/mcp" }, /'files' cannot be reached/, /host and port/]
    ]
    for (const [name, settings, detail, advice] of broken) {
      it.effect(name, () =>
        Effect.map(about(settings), (finding) => {
          assert.match(finding.detail, detail)
          if (advice !== undefined) assert.match(finding.advice ?? "", advice)
        })
      )
    }

    it.effect("an address where nothing listens", () =>
      Effect.gen(function* () {
        const { url } = yield* Http.gone
        const finding = yield* about({ url: url() })
        assert.strictEqual(finding.detail, "MCP server 'files' cannot be reached (ECONNREFUSED)")
        assert.match(finding.advice ?? "", /^Is the server running/)
      })
    )

    it.effect("an address where something else answers", () =>
      Effect.gen(function* () {
        const page = yield* about({ url: yield* answering(200, "<html>hello</html>") })
        assert.match(page.detail, /^MCP server 'files' /)
        assert.match(page.advice ?? "", /Most end in \/mcp/)
        const gone = yield* about({ url: yield* answering(404, "not here"), transport: "http" })
        assert.match(gone.detail, /HTTP status 404/)
        assert.match(gone.advice ?? "", /Most end in \/mcp/)
      })
    )

    it.effect("a server that asks for a sign-in", () =>
      Effect.gen(function* () {
        const server = yield* Guard.serve(new Guard.Guard())
        const finding = yield* about({ url: server.url() })
        assert.strictEqual(finding.detail, "MCP server 'files' needs a sign-in")
        assert.match(finding.advice ?? "", /kernai mcp sign-in files/)
      })
    )
  })

  it.effect("reports an error of the config as a whole", () =>
    Effect.gen(function* () {
      for (const [text, detail] of [
        ["servers: [", /^MCP config cannot be read: /],
        ["servers:\n  a: {command: x}\n  a: {command: y}", /^MCP config cannot be read: /],
        ["servers: {a: !!js/function 'x'}", /tags are not allowed/],
        ["mcpServers: {}", /must declare at least one server under 'mcpServers:'/]
      ] as const) {
        const findings = yield* McpDoctor.examine(text)
        assert.lengthOf(findings, 1)
        assert.strictEqual(findings[0]?.server, undefined)
        assert.match(findings[0]?.detail ?? "", detail)
      }
    })
  )

  it.effect("examines every server, whatever the others are like, and leaves none running (R-15)", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const findings = yield* examine({
        bad: { transport: "http" },
        good: { command, args: [...args, "", side] },
        shell: { command, args: [...args, "", "", "~/notes", "$(id)", "|"] },
        refs: { command, args: [...args, "refs"] },
        odd: { command, args: [...args, "malformed"] }
      })
      assert.deepStrictEqual(
        findings.map(({ server, state }) => [server, state]),
        [
          ["bad", "wrong"],
          ["good", "ok"],
          ["shell", "ok"],
          ["shell", "warning"],
          ["shell", "warning"],
          ["shell", "warning"],
          ["refs", "ok"],
          ["refs", "warning"],
          ["odd", "ok"],
          ["odd", "warning"]
        ]
      )
      assert.match(findings[1]!.detail, /^hostile 0, stdio, revision 2025-11-25, \d+ tools$/)
      assert.match(findings[3]!.detail, /"~\/notes" reaches the program unchanged/)
      assert.match(findings[7]!.detail, /left out \("remote", "relative", "output"\): their schemas refer to other/)
      assert.match(findings[9]!.detail, /left out \("half", "without a name", "desc"\): they are malformed/)
      assert.isFalse(Support.isAlive(Number(Support.lines(side)[0]!.split(" ")[1])))
    })
  )

  it.effect("warns of variables that make a program load other code", () =>
    Effect.gen(function* () {
      const env = ["LD_PRELOAD", "NODE_OPTIONS", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "BASH_ENV", "JAVA_TOOL_OPTIONS"]
      const given = { ...Object.fromEntries(env.map((name) => [name, ""])), API_KEY: "k", LANG: "C", NODE_ENV: "test" }
      const findings = yield* examine({ it: { command, args, env: given } })
      assert.deepStrictEqual(
        findings.flatMap(({ detail, state }) =>
          state === "warning" ? [/^the variable "(\w+)"/.exec(detail)?.[1]] : []
        ),
        env
      )
    })
  )

  it.effect("looks for a program in the PATH of its process", () =>
    Effect.gen(function* () {
      const folder = path.dirname(yield* Support.sideFile)
      const hostile = fs.readFileSync(Support.hostileScript, "utf8")
      fs.writeFileSync(path.join(folder, "kernai-test-server.mjs"), `#!${process.execPath}\n${hostile}`, {
        mode: 0o700
      })
      const server = { command: "kernai-test-server.mjs", args: [] }
      const findings = yield* examine({ there: { ...server, env: { PATH: folder } }, away: server })
      assert.deepStrictEqual(
        findings.map(({ server, state }) => [server, state]),
        [
          ["there", "ok"],
          ["away", "wrong"]
        ]
      )
      assert.include(findings[1]!.detail, "is not found in PATH")
    })
  )

  it.effect("reveals no secret (S-7)", () =>
    Effect.gen(function* () {
      const findings = yield* McpDoctor.examine(
        JSON.stringify({
          servers: {
            a: {
              command: process.execPath,
              args: ["-e", "console.error('Error: key ' + process.env.KEY); process.exit(1)"],
              env: { KEY: "${KEY}" }
            },
            b: { url: "http://kernai.invalid/mcp?key=${KEY}", headers: { authorization: "Bearer ${KEY}" } },
            c: { command: "${KEY} --stdio" },
            d: { command: "/no/such/${KEY}", args: [] },
            e: { command, args, cwd: "/no/such/${KEY}" }
          }
        }),
        { env: { KEY: "sk-SECRET-0123456789abcdef" } }
      )
      assert.notInclude(JSON.stringify(findings), "SECRET")
      assert.deepStrictEqual(
        findings.slice(2).map(({ detail }) => detail),
        [
          "the program '${KEY}' of MCP server 'c' is not found in PATH",
          "the program '/no/such/${KEY}' of MCP server 'd' does not exist",
          "the folder '/no/such/${KEY}' in 'cwd' of MCP server 'e' does not exist"
        ]
      )
    })
  )
})

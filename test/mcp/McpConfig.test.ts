import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Redacted } from "effect"
import { McpConfig } from "kernai/mcp"

const fail = (value: unknown, env = {}) => Effect.flip(McpConfig.fromValue(value, { env }))
const one = (settings: unknown, env = {}) =>
  Effect.map(McpConfig.fromValue({ servers: { it: settings } }, { env }), (config) => config.servers.get("it")!)
const reveal = (values: { readonly [name: string]: Redacted.Redacted<string> }) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Redacted.value(value)]))
const argv = (server: McpConfig.McpServer) =>
  server.transport === "stdio"
    ? [server.command, ...server.args.map((arg) => (Redacted.isRedacted(arg) ? Redacted.value(arg) : arg))]
    : []

describe("McpConfig", () => {
  it.effect("reads servers in their order", () =>
    Effect.gen(function* () {
      const config = yield* McpConfig.fromYaml(`
servers:
  fs:
    command: npx -y server-filesystem "/tmp/a b"
    env:
      DEBUG: 1
    timeout: 30 seconds
  gh:
    url: https://example.com/mcp
    headers: { Authorization: "Bearer \${GH_TOKEN}" }
    trustAnnotations: true
  old:
    transport: http
    url: http://127.0.0.1:1/sse
`).pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { GH_TOKEN: "t0k" } })))
      assert.deepStrictEqual([...config.servers.keys()], ["fs", "gh", "old"])
      const fs = config.servers.get("fs")
      const gh = config.servers.get("gh")
      assert(fs?.transport === "stdio" && gh?.transport === "streamable_http")
      assert.deepStrictEqual(argv(fs), ["npx", "-y", "server-filesystem", "/tmp/a b"])
      assert.deepStrictEqual(reveal(fs.env), { DEBUG: "1" })
      assert.strictEqual(Duration.toMillis(fs.timeout), 30_000)
      assert.deepStrictEqual(reveal(gh.headers), { Authorization: "Bearer t0k" })
      assert.isTrue(gh.trustAnnotations)
      assert.isTrue(gh.inferred)
      assert.strictEqual(config.servers.get("old")?.transport, "streamable_http")
      assert.notInclude(JSON.stringify(config.servers.get("gh")), "t0k")
    })
  )

  describe("names the problem (BP-171)", () => {
    const cases: ReadonlyArray<readonly [unknown, string]> = [
      [null, "MCP config must declare at least one server under 'servers:'"],
      [{}, "MCP config must declare at least one server under 'servers:'"],
      [{ servers: {} }, "MCP config must declare at least one server under 'servers:'"],
      [{ servers: ["fs"] }, "MCP config must declare at least one server under 'servers:'"],
      [
        { server: { fs: { command: "x" } } },
        "MCP config must declare at least one server under 'servers:', not under 'server:'"
      ],
      [{ servers: { fs: { command: "x" } }, serves: {} }, "'serves' is not a known key; did you mean 'servers'?"],
      [
        { servers: { fs: { command: "x" } }, timeout: 3 },
        "'timeout' is not a known key; known keys: servers, mcpServers"
      ],
      [{ servers: { n: { transport: "stdio" } } }, "stdio server 'n' missing 'command'"],
      [{ servers: { n: { transport: "stdio", command: " " } } }, "stdio server 'n' missing 'command'"],
      [{ servers: { n: { transport: "sse" } } }, "sse server 'n' missing 'url'"],
      [{ servers: { n: { transport: "http" } } }, "http server 'n' missing 'url'"],
      [{ servers: { n: { transport: "streamable_http", url: "" } } }, "http server 'n' missing 'url'"],
      [{ servers: { n: {} } }, "http server 'n' missing 'url'"],
      [{ servers: { n: null } }, "http server 'n' missing 'url'"],
      [{ servers: { n: { transport: "pigeon", command: "x" } } }, "unknown MCP transport for server 'n': \"pigeon\""],
      [{ servers: { n: "npx x" } }, "MCP server 'n' must be a mapping"],
      [{ servers: { "": { command: "x" } } }, "the name of an MCP server must have 1 to 128 characters"],
      [{ servers: { ["n".repeat(129)]: {} } }, "the name of an MCP server must have 1 to 128 characters"],
      [
        { servers: { n: { command: "x", protocolVersion: "2025-01-01" } } },
        "'protocolVersion' of MCP server 'n' must be one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"
      ],
      [{ servers: { n: { command: "x 'y" } } }, "the 'command' of MCP server 'n' has a quote that is never closed"],
      [{ servers: { n: { command: "'' x" } } }, "stdio server 'n' missing 'command'"],
      [{ servers: { n: { command: ["x"] } } }, "'command' of MCP server 'n' must be text"],
      [{ servers: { n: { command: "x", args: ["\0"] } } }, "'args[0]' of MCP server 'n' must not hold a NUL character"],
      [
        { servers: { n: { command: "x", env: "A=1" } } },
        "'env' of MCP server 'n' must be a mapping, or a list of names in capitals, digits and underscores"
      ],
      [{ servers: { n: { url: "https://h/", headers: [] } } }, "'headers' of MCP server 'n' must be a mapping"],
      [{ servers: { n: { url: "https://h/", headers: { A: [1] } } } }, "'headers.A' of MCP server 'n' must be text"],
      [
        { servers: { n: { command: "x ${NOT}" } } },
        "the 'command' of MCP server 'n' asks for ${NOT}, but NOT is not set"
      ],
      [
        { servers: { n: { command: "x", args: ["y", "${NOT}"] } } },
        "'args[1]' of MCP server 'n' asks for ${NOT}, but NOT is not set"
      ],
      [
        { servers: { n: { command: "${NOT}", args: [] } } },
        "the 'command' of MCP server 'n' asks for ${NOT}, but NOT is not set"
      ],
      [{ servers: { n: { command: "x", args: "y" } } }, "'args' of MCP server 'n' must be a list of texts"],
      [{ servers: { n: { command: "x", args: ["y", ["z"]] } } }, "'args[1]' of MCP server 'n' must be text"],
      [
        { servers: { n: { command: "x", timeout: 5 } } },
        "'timeout' of MCP server 'n' must be a duration with its unit, as in '30 seconds'"
      ],
      ...["0 seconds", "-1 seconds", "Infinity"].map((timeout): readonly [unknown, string] => [
        { servers: { n: { command: "x", timeout } } },
        "'timeout' of MCP server 'n' must be a duration with its unit, as in '30 seconds'"
      ]),
      [
        { servers: { n: { command: "x", trustAnnotations: "yes" } } },
        "'trustAnnotations' of MCP server 'n' must be true or false"
      ],
      ...["80", 1.5, -1, 65_536].map((redirectPort): readonly [unknown, string] => [
        { servers: { n: { url: "https://h/", oauth: { redirectPort } } } },
        "'oauth.redirectPort' of MCP server 'n' must be a port"
      ])
    ]
    it.effect.each(cases)("%j", ([value, message]) =>
      Effect.gen(function* () {
        const error = yield* fail(value)
        assert.strictEqual(error._tag, "ConfigInvalid")
        assert.strictEqual(error.message, message)
      })
    )

    it.effect.each([
      "file:///etc/passwd",
      "gopher://x",
      "http://u:p@host/",
      "http://u@host/",
      "http://:p@host/",
      "host/mcp",
      "javascript:alert(1)"
    ])("refuses the address %s", (url) =>
      Effect.gen(function* () {
        const error = yield* fail({ servers: { n: { transport: "http", url } } })
        assert.include(error.message, "must be an http or https address")
        assert.notInclude(error.message, "u:p")
      })
    )
  })

  describe("refuses a key it does not know, and names the nearest one", () => {
    const known =
      "transport, type, disabled, protocolVersion, connectTimeout, timeout, progressTimeout, trustAnnotations, elicitation, sampling, command, args, env, inheritNetwork, cwd, url, headers, oauth"
    const cases: ReadonlyArray<readonly [object, string, string]> = [
      [{ command: "x", tiemout: "5 seconds" }, "tiemout", "; did you mean 'timeout'?"],
      [{ command: "x", Timeout: "5 seconds" }, "Timeout", "; did you mean 'timeout'?"],
      [{ command: "x", arg: [] }, "arg", "; did you mean 'args'?"],
      [{ url: "https://h/", oauth: { clientID: "me" } }, "oauth.clientID", "; did you mean 'clientId'?"],
      [{ command: "x", sampling: { call: 2 } }, "sampling.call", "; did you mean 'calls'?"],
      [{ url: "https://h/", oauth: { scope: ["a"] } }, "oauth.scope", "; did you mean 'scopes'?"],
      [{ url: "https://h/", authentication: "sk-SECRET" }, "authentication", `; known keys: ${known}`],
      [
        { url: "https://h/", oauth: { x: 1 } },
        "oauth.x",
        "; known keys: clientId, clientSecret, privateKey, grant, scopes, redirectPort"
      ],
      [{ command: "x", [`${"q".repeat(70)}\u202e`]: 1 }, `${"q".repeat(60)}…`, `; known keys: ${known}`],
      [{ command: "x", "a\u202e": 1 }, "a\\u{202e}", `; known keys: ${known}`]
    ]
    it.effect.each(cases)("%j", ([server, place, advice]) =>
      Effect.gen(function* () {
        const error = yield* fail({ servers: { n: server } })
        assert.strictEqual(error.path, `servers.n.${place}`)
        assert.strictEqual(error.message, `'${place}' of MCP server 'n' is not a known key${advice}`)
      })
    )
  })

  it.effect("reads the configs of other programs", () =>
    Effect.gen(function* () {
      const text = JSON.stringify({
        globalShortcut: "",
        mcpServers: {
          files: { command: "npx", args: ["-y", "server", "${ROOT:-/tmp/a b}"], env: { KEY: "${env:KEY}" } },
          stdio: { type: "stdio", command: "node", args: [], autoApprove: ["*"], trust: true },
          http: {
            type: "http",
            url: "https://example.com/mcp",
            headers: { "X-Key": "${KEY}" },
            description: "A server"
          },
          streamed: { type: "streamable-http", url: "https://example.com/sse" },
          sse: { type: "sse", url: "https://example.com/events" },
          off: { command: "gone", disabled: true }
        }
      })
      const { servers } = yield* McpConfig.fromYaml(text, { env: { KEY: "k" } })
      assert.deepStrictEqual(
        [...servers].map(([name, { transport }]) => [name, transport]),
        [
          ["files", "stdio"],
          ["stdio", "stdio"],
          ["http", "streamable_http"],
          ["streamed", "streamable_http"],
          ["sse", "sse"]
        ]
      )
      const [files, http] = [servers.get("files"), servers.get("http")]
      assert(files?.transport === "stdio" && http?.transport === "streamable_http")
      assert.deepStrictEqual(argv(files), ["npx", "-y", "server", "/tmp/a b"])
      assert.deepStrictEqual([reveal(files.env), reveal(http.headers)], [{ KEY: "k" }, { "X-Key": "k" }])
      assert.isFalse(files.inheritNetwork)
    })
  )

  it.effect("still rejects unknown keys in them", () =>
    Effect.gen(function* () {
      for (const [value, message] of [
        [{ mcpServers: { it: { command: "x", arg: [] } } }, "did you mean 'args'?"],
        [{ mcpServers: {}, servers: {} }, "has both 'servers:' and 'mcpServers:'"],
        [{ mcpServers: {} }, "at least one server under 'mcpServers:'"],
        [{ mcpServers: { it: { command: "x", disabled: true } } }, "all MCP servers of the config are disabled"],
        [{ servers: { it: { command: "x", autoApprove: [] } } }, "is not a known key"],
        [{ mcpServers: { it: { command: "x", timeout: 60 } } }, "must be a duration with its unit"]
      ] as const) {
        assert.include((yield* fail(value)).message, message)
      }
    })
  )

  it.effect("counts a key without a value as left out", () =>
    Effect.gen(function* () {
      const server = yield* one({ command: "x", args: null, timeout: null, env: { A: null, B: "b" }, oauth: null })
      assert(server.transport === "stdio")
      assert.deepStrictEqual([argv(server), reveal(server.env)], [["x"], { B: "b" }])
      assert.strictEqual(Duration.toMillis(server.timeout), 300_000)
    })
  )

  it.effect("reads the settings of a server, and fills in defaults", () =>
    Effect.gen(function* () {
      const odd = "n".repeat(128)
      const { servers } = yield* McpConfig.fromValue({
        servers: {
          [odd]: { command: null, url: "https://h/sse", protocolVersion: "2025-06-18" },
          given: { transport: "sse", url: "https://h/", command: "", oauth: { redirectPort: 65_535 } },
          both: { command: "", url: "https://h/" }
        }
      })
      const told = [...servers.values()].map((server) =>
        server.transport === "stdio"
          ? assert.fail(server.name)
          : [
              server.transport,
              server.inferred,
              server.protocolVersion,
              server.trustAnnotations,
              server.oauth.redirectPort
            ]
      )
      assert.deepStrictEqual(told, [
        ["sse", true, "2025-06-18", false, 0],
        ["sse", false, "2025-11-25", false, 65_535],
        ["streamable_http", true, "2025-11-25", false, 0]
      ])
    })
  )

  describe("infers the transport (BP-172, W-17)", () => {
    it.each([
      [{ command: "x" }, "stdio"],
      [{ command: "x", url: "http://h/sse" }, "stdio"],
      [{ url: "https://h/sse" }, "sse"],
      [{ url: "https://h/v1/sse/?a=b" }, "sse"],
      [{ url: "https://h/SSE", command: null }, "streamable_http"],
      [{ url: "https://assets.example/mcp" }, "streamable_http"],
      [{ url: "https://sse.example/mcp?to=/sse" }, "streamable_http"],
      [{ url: "https://h/assets" }, "streamable_http"]
    ] as const)("%j is %s", (server, transport) => {
      assert.strictEqual(McpConfig.inferTransport(server), transport)
    })
  })

  describe("replaces variables in parsed texts only (BP-173, W-16)", () => {
    it.effect("keeps a hostile value one text (S-2)", () =>
      Effect.gen(function* () {
        const TOKEN = `x"\n  evil:\n    command: sh`
        const yaml = 'servers:\n  a:\n    url: https://h/\n    headers:\n      Authorization: "Bearer ${TOKEN}"\n'
        const config = yield* McpConfig.fromYaml(yaml, { env: { TOKEN } })
        assert.deepStrictEqual([...config.servers.keys()], ["a"])
        const server = config.servers.get("a")
        assert(server?.transport === "streamable_http")
        assert.deepStrictEqual(reveal(server.headers), { Authorization: `Bearer ${TOKEN}` })
      })
    )

    it.effect("keeps a value with blanks and quotes one word of a command (S-1)", () =>
      Effect.gen(function* () {
        const server = yield* one({ command: "node ${SCRIPT} end" }, { SCRIPT: `a b"; id` })
        assert.deepStrictEqual(argv(server), ["node", `a b"; id`, "end"])
      })
    )

    it.effect("redacts texts with a variable, and no others (S-7)", () =>
      Effect.gen(function* () {
        const server = yield* one({ command: "x", args: ["plain", "${KEY}"] }, { KEY: "k" })
        assert(server.transport === "stdio")
        assert.deepStrictEqual(server.args.map(Redacted.isRedacted), [false, true])
        const written = (settings: unknown) => Effect.map(one(settings, { KEY: "k" }), (server) => server.written)
        assert.deepStrictEqual(yield* written({ command: "${KEY} y" }), { command: "${KEY}", cwd: undefined })
        assert.deepStrictEqual(yield* written({ command: "x", cwd: "/${KEY}" }), { command: "x", cwd: "/${KEY}" })
        assert.deepStrictEqual(yield* written({ command: "x y" }), { command: "x", cwd: undefined })
        assert.deepStrictEqual(yield* written({ url: "https://h/", headers: { A: "${KEY}" } }), { url: "https://h/" })
        const web = yield* one({ url: "https://h/${KEY}", oauth: { clientSecret: "s-${KEY}" } }, { KEY: "k" })
        assert(web.transport !== "stdio" && web.oauth.clientSecret !== undefined)
        assert.deepStrictEqual(web.written, { url: "https://h/${KEY}" })
        assert.deepStrictEqual(
          web.variables.map((value) => Redacted.value(value)),
          ["k"]
        )
        assert.strictEqual(Redacted.value(web.oauth.clientSecret), "s-k")
      })
    )

    it.effect("does not search a replaced value again", () =>
      Effect.gen(function* () {
        const server = yield* one({ command: "x", args: ["${A}$B${c}${D:-e}"] }, { A: "${B}", B: "no" })
        assert.deepStrictEqual(argv(server), ["x", "${B}$B${c}${D:-e}"])
      })
    )

    it.effect("replaces them in the settings of a sign-in", () =>
      Effect.gen(function* () {
        const oauth = { clientId: "${ID}", scopes: ["read", "${AREA}.write"] }
        const server = yield* one({ url: "https://h/", oauth }, { ID: "me", AREA: "files" })
        assert(server.transport === "streamable_http")
        assert.strictEqual(server.oauth.clientId, "me")
        assert.deepStrictEqual(server.oauth.scopes, ["read", "files.write"])
        const unset = yield* fail({ servers: { n: { url: "https://h/", oauth } } }, { ID: "me" })
        assert.strictEqual(unset.message, "'oauth.scopes[1]' of MCP server 'n' asks for ${AREA}, but AREA is not set")
        const none = yield* one({ url: "https://h/", oauth: { scopes: [] } })
        assert(none.transport === "streamable_http")
        assert.deepStrictEqual(none.oauth.scopes, [])
      })
    )

    it.effect("names a variable that is unset or empty", () =>
      Effect.gen(function* () {
        for (const env of [{}, { UNSET: "" }]) {
          const error = yield* fail({ servers: { n: { url: "http://h", headers: { A: "Bearer ${UNSET}" } } } }, env)
          assert.strictEqual(error._tag, "ConfigInvalid")
          assert.strictEqual(error.message, "'headers.A' of MCP server 'n' asks for ${UNSET}, but UNSET is not set")
        }
      })
    )

    it.effect("passes variables on by name", () =>
      Effect.gen(function* () {
        const server = yield* one({ command: "x", env: ["TOKEN"] }, { TOKEN: "t", OTHER: "o" })
        assert(server.transport === "stdio")
        assert.deepStrictEqual(reveal(server.env), { TOKEN: "t" })
        const error = yield* fail({ servers: { n: { command: "x", env: ["to-ken"] } } }, { "to-ken": "t" })
        assert.strictEqual(error.path, "servers.n.env[0]")
        assert.include(error.message, "names in capitals, digits and underscores")
      })
    )
  })

  describe("splits a command without a shell (S-1)", () => {
    it.effect.each([
      ["node s.js; touch pwned", ["node", "s.js;", "touch", "pwned"]],
      ["a 'b c' \"d 'e'\" f\\ g \"\" 'h'i", ["a", "b c", "d 'e'", "f g", "", "hi"]],
      ['a "\\"\\\\\\n$x"', ["a", '"\\\\n$x']],
      ["a $(touch pwned) `id` > x | y & * ~", ["a", "$(touch", "pwned)", "`id`", ">", "x", "|", "y", "&", "*", "~"]]
    ] as const)("%s", ([command, words]) =>
      Effect.map(one({ command }), (server) => assert.deepStrictEqual(argv(server), [...words]))
    )

    it.effect("passes arguments as they are", () =>
      Effect.map(one({ command: "my server", args: ["$(touch pwned)", "a b", "; id", 1, true] }), (server) =>
        assert.deepStrictEqual(argv(server), ["my server", "$(touch pwned)", "a b", "; id", "1", "true"])
      )
    )
  })

  describe("refuses hostile YAML (S-3)", () => {
    let bomb = "a: &a x\n"
    for (let level = 1; level <= 9; level++) {
      const alias = `*${"abcdefghij"[level - 1]}`
      bomb += `${"abcdefghij"[level]}: &${"abcdefghij"[level]} [${Array(9).fill(alias).join(",")}]\n`
    }
    const cases: ReadonlyArray<readonly [string, string, string]> = [
      ["an alias bomb", bomb, "more than 10000 nodes"],
      ["a tag", `servers: { a: { command: !!js/function "x" } }`, "tags are not allowed"],
      ["a local tag", "servers:\n  a:\n    command: !sh x", "tags are not allowed"],
      ["a prototype key", "servers: {__proto__: {command: sh}}", "'__proto__' is not allowed as a key"],
      ["a constructor key", "servers: {constructor: {command: sh}}", "'constructor' is not allowed as a key"],
      ["a key twice", "servers:\n  a:\n    command: x\n  a:\n    command: y", "Duplicate key 'a'"],
      ["deep nesting", "[".repeat(100_000), "nests too deeply"],
      ["a run of blanks", `servers: [a${" ".repeat(100_000)}b]`, "a run of more than"],
      ["a run of digits", `servers: ${"1".repeat(100_000)}x`, "a run of more than"],
      ["a run of backslashes", `servers: "x${"\\".repeat(100_000)}y\n  z"`, "a run of more than"],
      ["a collection of many lines", "\n{".repeat(100_000), "too many lines"],
      ["tags among texts that look like one", `a: !x y\nb: '${"-#|".repeat(80_000)}'`, "tags are not allowed"],
      ["a document that is too long", "# x\n".repeat(100_000), "longer than"],
      ["a document that is not YAML", "servers: [", "flow offset"]
    ]
    it.effect.each(cases)("%s", ([, text, reason]) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(McpConfig.fromYaml(text))
        assert.strictEqual(error._tag, "ConfigInvalid")
        assert.include(error.message, reason)
        assert.isUndefined(({} as { polluted?: unknown }).polluted)
      })
    )

    it.effect("allows aliases, and quoted texts that look like a tag", () =>
      Effect.gen(function* () {
        const config = yield* McpConfig.fromYaml(
          "x-defaults: &d {A: '!x'}\nservers:\n  a: {command: x, env: *d}\n  b: {command: y, env: *d}\n"
        )
        assert.deepStrictEqual(
          [...config.servers.values()].map((server) => (server.transport === "stdio" ? reveal(server.env) : {})),
          [{ A: "!x" }, { A: "!x" }]
        )
      })
    )

    it.effect("refuses values that are not plain data", () =>
      Effect.gen(function* () {
        const cycle: { servers?: unknown } = {}
        cycle.servers = { a: cycle }
        const thrower = {
          get servers() {
            throw new Error("sk-secret")
          }
        }
        for (const value of [cycle, thrower, { servers: new Map() }, { servers: { a: { command: () => "x" } } }, 1n]) {
          const error = yield* fail(value)
          assert.strictEqual(error._tag, "ConfigInvalid")
          assert.notInclude(error.message, "sk-secret")
        }
      })
    )
  })
})

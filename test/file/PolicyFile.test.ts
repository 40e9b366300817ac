import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path } from "effect"
import { Policy } from "kernai"
import { PolicyFile } from "kernai/file"
import { call } from "../support/policy.ts"

const written = `
deny:
  - name: shell
    where: { command: '\\brm\\b' }
    reason: nothing is deleted
confirm: ["fs_{write,delete}"]
allow:
  - name: search
default:
  write: deny
hide: [internal_*]
`

const withFile = <A, E, R>(text: string, body: (path: string) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* fs.makeTempDirectoryScoped()
    const file = path.join(folder, "policy.yaml")
    yield* fs.writeFileString(file, text)
    return yield* body(file)
  }).pipe(Effect.provide(NodeServices.layer))

const reason = (text: string) => Effect.map(Effect.flip(PolicyFile.parse(text)), (error) => error.message)

describe("PolicyFile", () => {
  it.effect("reads rules, and combines them with an existing policy (AC-19)", () =>
    withFile(written, (file) =>
      Effect.gen(function* () {
        const outer = Policy.layerRules({ deny: [{ name: "search", where: { q: "secret" }, reason: "outer" }] })
        const policy = Policy.among(yield* Layer.build(Layer.provideMerge(PolicyFile.layer(file), outer)))!
        const decide = (asked: Policy.PolicyCall) => policy.authorize(asked)
        assert.deepStrictEqual(
          yield* decide(call("shell", { command: "sudo rm x" })),
          Policy.denied("nothing is deleted")
        )
        assert.strictEqual((yield* decide(call("shell", { command: "format" })))._tag, "Denied")
        assert.strictEqual((yield* decide(call("fs_write")))._tag, "Confirm")
        assert.strictEqual((yield* decide(call("search")))._tag, "Allowed")
        assert.deepStrictEqual(yield* decide(call("search", { q: "secret" })), Policy.denied("outer"))
        assert.deepStrictEqual(yield* decide(call("internal_x")), Policy.denied("not available"))
      })
    )
  )

  it.effect("reads an empty file as an empty policy, and accepts one word as the default", () =>
    Effect.gen(function* () {
      const { deny, default: fallback } = yield* PolicyFile.parse("deny:\ndefault: { write: deny }")
      assert.deepStrictEqual([deny, fallback], [[], { read: "allow", idempotent: "allow", write: "deny" }])
      assert.deepStrictEqual(yield* PolicyFile.parse(""), {
        deny: [],
        confirm: [],
        allow: [],
        hide: [],
        default: "allow"
      })
      for (const word of ["allow", "confirm", "deny", "effects"] as const) {
        assert.strictEqual((yield* PolicyFile.parse(`default: ${word}`)).default, word)
      }
    })
  )

  it.effect("rejects an invalid rule, with its path", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* reason("denny: []"), "unknown key 'denny'; did you mean 'deny'?")
      assert.match(yield* reason("deny: [{ name: a, wehre: {} }]"), /unknown key 'wehre'; did you mean 'where'\?$/)
      assert.match(yield* reason("default: { wirte: deny }"), /unknown key 'wirte'; did you mean 'write'\?$/)
      assert.match(yield* reason("deny: shell"), /^deny: expected a list/)
      assert.match(yield* reason("deny: [{ tool: shell }]"), /^deny\[0\]: unknown key 'tool'/)
      assert.match(yield* reason("deny: [{ where: {} }]"), /^deny\[0\].name: expected a text/)
      assert.match(yield* reason("deny: ['']"), /^deny\[0\]: expected a text/)
      assert.match(yield* reason("deny: [{ name: a, where: rm }]"), /^deny\[0\].where: expected a mapping/)
      assert.match(yield* reason("deny: [{ name: a, where: { n: 5 } }]"), /^deny\[0\].where.n: expected a text/)
      assert.match(yield* reason("default: maybe"), /^default: expected allow, confirm or deny; or effects, or one/)
      assert.match(yield* reason("default: { delete: deny }"), /unknown key 'delete'/)
      for (const effects of ["read", "idempotent", "write"]) {
        assert.match(
          yield* reason(`default: { ${effects}: }`),
          new RegExp(`^default.${effects}: expected allow, confirm`)
        )
      }
      assert.match(yield* reason("- a"), /^expected a mapping/)
      assert.match(yield* reason("deny: ["), /cannot be read/)
    })
  )

  it.effect("rejects bombs, prototype keys and duplicate keys (S-3)", () =>
    Effect.gen(function* () {
      const levels = "bcdefghij".split("").map((name, index) => {
        const before = index === 0 ? "'x'" : `*${"abcdefghij"[index]}`
        return `${name}: &${name} [${Array(9).fill(before).join(", ")}]`
      })
      for (const text of [levels.join("\n"), "__proto__: { deny: [] }", "deny: []\ndeny: []"]) {
        assert.match(yield* reason(text), /cannot be read/)
      }
    })
  )

  it.effect(
    "fails with a typed error for a path that is missing, not a file, too large, or has an unsafe pattern (S-12)",
    () =>
      withFile("deny: [{ name: '*', where: { a: '(?=b)' } }]", (file) =>
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const path = yield* Path.Path
          const message = (file: string) => Effect.map(Effect.flip(PolicyFile.load(file)), (error) => error.message)
          assert.match(yield* message(file), /deny\[0\].where.a: unsupported/)
          assert.include(yield* message(file), `(in '${file}')`)
          assert.match(yield* message(`${file}.gone`), /cannot be read/)
          assert.match(yield* message(path.dirname(file)), /not a plain file/)
          yield* fs.writeFileString(file, "#".repeat(300_000))
          assert.match(yield* message(file), /larger than/)
        })
      )
  )
})

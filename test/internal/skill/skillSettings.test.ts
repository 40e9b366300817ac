import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted, Schema } from "effect"
import * as Skill from "../../../src/Skill.ts"
import { scope } from "../../support/skillSpec.ts"

describe("Skill settings (BP-92, BP-93)", () => {
  const asking = (ask: (context: Skill.SkillContext) => Effect.Effect<unknown, unknown>) =>
    Skill.make("mail-er", {
      description: "",
      input: Schema.Struct({}),
      config: {
        host: { default: "localhost" },
        port: { type: "integer" },
        ratio: { type: "number" },
        debug: { type: "boolean", default: false }
      },
      credentials: { token: { required: true }, hint: {} },
      execute: (_, context) => ask(context)
    }).call({}, scope)

  const env = (values: Record<string, string>) =>
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: values }))

  it.effect("reads KERNAI_SKILL_<SKILL>_<KEY> through the ConfigProvider", () =>
    Effect.gen(function* () {
      const token = yield* asking((context) => context.credential("token"))
      assert.isTrue(Redacted.isRedacted(token))
      assert.notInclude(String(token), "s3cret")
      assert.strictEqual(Redacted.isRedacted(token) ? Redacted.value(token) : undefined, "s3cret")
      assert.strictEqual(yield* asking((context) => context.config("port")), 25)
    }).pipe(env({ KERNAI_SKILL_MAIL_ER_TOKEN: "s3cret", KERNAI_SKILL_MAIL_ER_PORT: "25", TOKEN: "bare" }))
  )

  it.effect("treats a value the ConfigProvider cannot read as not set (BP-93)", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* asking((context) => context.config("host")), "localhost")
      assert.isNull(yield* asking((context) => context.credential("hint")))
    }).pipe(
      Effect.provideService(
        ConfigProvider.ConfigProvider,
        ConfigProvider.make(() => Effect.fail(new ConfigProvider.SourceError({ message: "the disk is gone" })))
      )
    )
  )

  it.effect("never falls back to the bare key, and names the variable that is missing", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(asking((context) => context.credential("token")))
      assert.strictEqual(
        String(error).replace(/^\w+: /, ""),
        "credential 'token' of skill 'mail-er' is missing: set KERNAI_SKILL_MAIL_ER_TOKEN"
      )
      assert.isNull(yield* asking((context) => context.credential("hint")))
    }).pipe(env({ TOKEN: "bare", HINT: "bare" }))
  )

  it.effect("returns the default, coerces strings, and rejects a string of another type", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* asking((context) => context.config("host")), "localhost")
      assert.isNull(yield* asking((context) => context.config("port")))
      const typed = asking((context) =>
        Effect.all([context.config("port"), context.config("ratio"), context.config("debug")])
      )
      const on = { port: "8080", ratio: "0.5", debug: "Yes" }
      assert.deepStrictEqual(yield* Effect.provide(typed, Skill.layerConfig(on)), [8080, 0.5, true])
      const off = { port: "80", ratio: "1e3", debug: "0" }
      assert.deepStrictEqual(yield* Effect.provide(typed, Skill.layerConfig(off)), [80, 1000, false])
      for (const bad of [{ port: "80x" }, { port: "1.5" }, { ratio: "" }, { ratio: "Infinity" }]) {
        const error = yield* Effect.flip(Effect.provide(typed, Skill.layerConfig({ ...on, ...bad })))
        assert.instanceOf(error, Skill.SkillSettingInvalid)
      }
    }).pipe(env({}))
  )

  it.effect("prefers nested values of a skill over flat ones", () =>
    Effect.gen(function* () {
      const hosts = Skill.layerConfig({ host: "flat", "mail-er": { host: "nested" }, other: { host: "foreign" } })
      assert.strictEqual(
        yield* Effect.provide(
          asking((context) => context.config("host")),
          hosts
        ),
        "nested"
      )
      const secret = Skill.layerCredentials({ token: Redacted.make("flat") })
      const token = yield* Effect.provide(
        asking((context) => context.credential("token")),
        secret
      )
      assert.strictEqual(Redacted.isRedacted(token) ? Redacted.value(token) : undefined, "flat")
    })
  )

  it.effect("lists the declared keys when an undeclared one is requested", () =>
    Effect.gen(function* () {
      const config = yield* Effect.flip(asking((context) => context.config("constructor")))
      assert.include(String(config), "declared: host, port, ratio, debug")
      const credential = yield* Effect.flip(asking((context) => context.credential("host")))
      assert.include(String(credential), "declared: token, hint")
    })
  )

  it.effect("treats an empty result of a resolver as not set (BP-92)", () =>
    Effect.gen(function* () {
      const nothing: null = Reflect.get({}, "absent")
      const resolver = { resolve: () => Effect.succeed(nothing) }
      const host = asking((context) => context.config("host"))
      assert.strictEqual(yield* Effect.provideService(host, Skill.ConfigResolver, resolver), "localhost")
      const token = asking((context) => context.credential("token"))
      const missing = yield* Effect.flip(Effect.provideService(token, Skill.CredentialResolver, resolver))
      assert.instanceOf(missing, Skill.CredentialMissing)
    }).pipe(env({}))
  )

  it.effect("calls the resolver once per key and execution, and not before", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const counting = Layer.succeed(Skill.CredentialResolver, {
        resolve: (skill, key) =>
          Effect.sync(() => {
            asked.push(`${skill}.${key}`)
            return null
          })
      })
      const twice = asking((context) => Effect.all([context.credential("hint"), context.credential("hint")]))
      assert.deepStrictEqual(asked, [])
      yield* Effect.provide(twice, counting)
      assert.deepStrictEqual(asked, ["mail-er.hint"])
      yield* Effect.provide(twice, counting)
      assert.deepStrictEqual(asked, ["mail-er.hint", "mail-er.hint"])
    })
  )
})

/**
 * What users rely on the compiler for: names, inputs, outputs and services of skills.
 */
import { Context, Effect, Layer, type Redacted, Schema, SchemaGetter } from "effect"
import * as Policy from "../src/Policy.ts"
import * as Protocol from "../src/Protocol.ts"
import * as ProtocolRegistry from "../src/ProtocolRegistry.ts"
import * as Skill from "../src/Skill.ts"
import * as SkillFileLoader from "../src/file/SkillFileLoader.ts"
import type * as SkillFiles from "../src/file/SkillFiles.ts"
import * as SkillRegistry from "../src/SkillRegistry.ts"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

class Library extends Context.Service<Library, { readonly search: (query: string) => Effect.Effect<string> }>()(
  "type/Library"
) {}
class Calendar extends Context.Service<Calendar, { readonly now: Effect.Effect<number> }>()("type/Calendar") {}
class Pictures extends Context.Service<Pictures, { readonly get: (id: string) => Effect.Effect<string> }>()(
  "type/Pictures"
) {}

const search = Skill.make("search", {
  description: "Search",
  input: Schema.Struct({ query: Schema.String }),
  effects: "read",
  execute: ({ query }) => Library.use((library) => library.search(query))
})
const now = Skill.make("now", {
  description: "Now",
  input: Schema.Struct({}),
  execute: () => Calendar.use((calendar) => calendar.now)
})
const pure = Skill.make("pure", {
  description: "Add one",
  input: Schema.Struct({ n: Schema.FiniteFromString }),
  execute: ({ n }) => Effect.succeed(n + 1)
})
const failing = Skill.make("failing", {
  description: "Fail",
  input: Schema.String,
  execute: (detail) => Effect.fail(new Skill.InvalidArguments({ skill: "failing", path: "", detail }))
})

// A skill remembers its literal name, what it is given, what it returns and what it needs.
yes<Equal<Skill.SkillTypes.Name<typeof search>, "search">>()
yes<Equal<Skill.SkillTypes.Input<typeof search>, { readonly query: string }>>()
yes<Equal<Skill.SkillTypes.Output<typeof search>, string>>()
yes<Equal<Skill.SkillTypes.Services<typeof search>, Library>>()
yes<Equal<Skill.SkillTypes.Input<typeof pure>, { readonly n: number }>>()
yes<Equal<Skill.SkillTypes.Output<typeof pure>, number>>()
yes<Equal<Skill.SkillTypes.Services<typeof failing>, never>>()
yes<Equal<Skill.SkillTypes.Input<Skill.AnySkill>, unknown>>()

// The layer needs the union of what its skills need, and only a name given twice can fail.
const registry = SkillRegistry.layer(search, now, pure, failing)
yes<
  Equal<typeof registry, Layer.Layer<SkillRegistry.SkillRegistry, SkillRegistry.ToolNameConflict, Library | Calendar>>
>()
const empty = SkillRegistry.layer()
yes<Equal<typeof empty, Layer.Layer<SkillRegistry.SkillRegistry, SkillRegistry.ToolNameConflict>>>()

// A schema that needs a service to decode makes the layer need it.
const Picture = Schema.String.pipe(
  Schema.decodeTo(Schema.Struct({ bytes: Schema.String }), {
    decode: SchemaGetter.transformEffect((id: string) =>
      Effect.map(
        Pictures.use((pictures) => pictures.get(id)),
        (bytes) => ({ bytes })
      )
    ),
    encode: SchemaGetter.transform(({ bytes }: { readonly bytes: string }) => bytes)
  })
)
const ocr = Skill.make("ocr", {
  description: "Read a picture",
  input: Schema.Struct({ image: Picture }),
  execute: ({ image }) => Effect.succeed(image.bytes)
})
const withPictures = SkillRegistry.layer(ocr, search)
yes<
  Equal<
    typeof withPictures,
    Layer.Layer<SkillRegistry.SkillRegistry, SkillRegistry.ToolNameConflict, Library | Pictures>
  >
>()

// A generator is told what it is given, too: with or without settings, by whatever describes the input.
Skill.make("generator", {
  description: "",
  input: Schema.Struct({ words: Schema.Array(Schema.String) }),
  execute: Effect.fnUntraced(function* (input, context) {
    yes<Equal<typeof input, { readonly words: ReadonlyArray<string> }>>()
    yes<Equal<typeof context.idempotencyKey, string>>()
    return input.words.map((word) => word.length)
  })
})
Skill.make("generator", {
  description: "",
  input: Schema.Struct({}),
  execute: Effect.fnUntraced(function* (_, context) {
    // @ts-expect-error nothing was declared
    return yield* context.config("host")
  })
})
Skill.make("generator", {
  description: "",
  input: Schema.Struct({ words: Schema.Array(Schema.String) }),
  config: { port: { type: "integer", default: 25 } },
  execute: Effect.fn("generator")(function* (input, context) {
    yes<Equal<typeof input, { readonly words: ReadonlyArray<string> }>>()
    const port = yield* context.config("port")
    yes<Equal<typeof port, number>>()
    // @ts-expect-error nobody declared it
    return yield* context.config("prot")
  })
})
Skill.dynamic("generator", {
  description: "",
  inputSchema: { type: "object" },
  credentials: { token: { required: true } },
  execute: Effect.fnUntraced(function* (input, context) {
    yes<Equal<(typeof input)[string], Schema.Json>>()
    const token = yield* context.credential("token")
    yes<Equal<typeof token, Redacted.Redacted<string>>>()
    if (Object.keys(input).length === 0) return token
    // @ts-expect-error a credential is no configuration
    return yield* context.config("token")
  })
})

Skill.make("bad", {
  description: "",
  input: Schema.Struct({ query: Schema.String }),
  // @ts-expect-error the input has no such field
  execute: ({ other }) => Effect.succeed(other)
})
Skill.make("bad", {
  description: "",
  input: Schema.Struct({}),
  // @ts-expect-error there are three words for effects
  effects: "safe",
  execute: () => Effect.succeed(null)
})

// Settings have the types that were declared, and only what was declared can be asked for.
type Asked<T> = T extends Effect.Effect<infer A, infer _E, infer _R> ? A : never
Skill.make("mailer", {
  description: "",
  input: Schema.Struct({}),
  config: {
    host: { default: "localhost" },
    user: {},
    port: { type: "integer" },
    retries: { type: "number", default: 3 },
    debug: { type: "boolean", default: null }
  },
  credentials: { token: { required: true }, hint: {}, old: { required: false } },
  execute: (_, context) => {
    const { host, user, port, retries, debug } = {
      host: context.config("host"),
      user: context.config("user"),
      port: context.config("port"),
      retries: context.config("retries"),
      debug: context.config("debug")
    }
    yes<Equal<Asked<typeof host>, string>>()
    yes<Equal<Asked<typeof user>, string | null>>()
    yes<Equal<Asked<typeof port>, number | null>>()
    yes<Equal<Asked<typeof retries>, number>>()
    yes<Equal<Asked<typeof debug>, boolean | null>>()
    const { token, hint, old } = {
      token: context.credential("token"),
      hint: context.credential("hint"),
      old: context.credential("old")
    }
    yes<Equal<Asked<typeof token>, Redacted.Redacted<string>>>()
    yes<Equal<Asked<typeof hint>, Redacted.Redacted<string> | null>>()
    yes<Equal<Asked<typeof old>, Redacted.Redacted<string> | null>>()
    // @ts-expect-error nobody declared it
    const slip = context.config("hots")
    // @ts-expect-error configuration is no credential
    const other = context.credential("host")
    return Effect.all([slip, other, anyPort(context)])
  }
})

// What is given the context of any skill may ask for any key, and takes that of each.
const anyPort = (context: Skill.SkillContext) => context.config("port")
yes<Equal<Asked<ReturnType<typeof anyPort>>, string | number | boolean | null>>()
Skill.dynamic("peer", {
  description: "",
  inputSchema: { type: "object" },
  config: { port: { type: "integer", default: 25 } },
  execute: (_, context) => Effect.map(context.config("port"), (port) => port.toFixed(0))
})
const config: Record<string, { readonly type: "number" }> = {}
Skill.make("computed", {
  description: "",
  input: Schema.Struct({}),
  config,
  execute: (_, context) => Effect.map(context.config("any"), (value) => (value ?? 0).toFixed(0))
})
Skill.make("bare", {
  description: "",
  input: Schema.Struct({}),
  // @ts-expect-error nothing was declared
  execute: (_, context) => context.config("host")
})
Skill.make("slip", {
  description: "",
  input: Schema.Struct({}),
  // @ts-expect-error no declaration has such a field
  config: { port: { type: "integer", defualt: 25 } },
  execute: () => Effect.succeed(null)
})
Skill.make("slip", {
  description: "",
  input: Schema.Struct({}),
  // @ts-expect-error there are four words for types
  config: { port: { type: "int" } },
  execute: () => Effect.succeed(null)
})
Skill.make("slip", {
  description: "",
  input: Schema.Struct({}),
  // @ts-expect-error no declaration has such a field
  credentials: { token: { requird: true } },
  execute: () => Effect.succeed(null)
})
const options: Skill.Options = { description: "", config: { port: { type: "integer" } } }
Skill.make("told", {
  ...options,
  input: Schema.Struct({}),
  execute: (_, context) => context.config("port")
})

// Declarations that are written elsewhere keep their types where the compiler is told what they are.
const mail = { port: { type: "integer", default: 25 } } satisfies Record<string, Skill.ConfigSpec>
const keys = { token: { required: true } } as const satisfies Record<string, Skill.CredentialSpec>
const send = (context: Skill.SkillContext<typeof mail, typeof keys>) => context.config("port")
Skill.make("elsewhere", {
  description: "",
  input: Schema.Struct({}),
  config: mail,
  credentials: keys,
  execute: (_, context) => {
    const { port, token } = { port: send(context), token: context.credential("token") }
    yes<Equal<Asked<typeof port>, number>>()
    yes<Equal<Asked<typeof token>, Redacted.Redacted<string>>>()
    return Effect.all([port, Effect.as(token, "")])
  }
})

// A foreign skill is given JSON.
const remote = Skill.dynamic("remote", {
  description: "",
  inputSchema: { type: "object" },
  execute: (input) => Effect.succeed(input)
})
yes<Equal<Skill.SkillTypes.Name<typeof remote>, "remote">>()
yes<Equal<Skill.SkillTypes.Services<typeof remote>, never>>()

// Protocols are closed over the same way.
const ask = Protocol.make("ask", { handle: (block) => Library.use((library) => library.search(block.content)) })
const protocols = ProtocolRegistry.layer(ask, Protocol.make("echo", { handle: (block) => Effect.succeed(block) }))
yes<
  Equal<typeof protocols, Layer.Layer<ProtocolRegistry.ProtocolRegistry, ProtocolRegistry.ToolNameConflict, Library>>
>()

// What skills in files need is named by hand, and asked of the layer.
const files = SkillFileLoader.layer<Library>({ directory: "skills" })
yes<Equal<Layer.Success<typeof files>, SkillFiles.SkillFiles>>()
yes<Library extends Layer.Services<typeof files> ? true : false>()
yes<Calendar extends Layer.Services<typeof files> ? false : true>()

// ---------------------------------------------------------------- progress

const loads = Skill.make("loads", {
  description: "",
  input: Schema.Struct({}),
  progress: Schema.Struct({ percent: Schema.Number }),
  execute: (_, { progress }) => Effect.as(progress({ percent: 1 }), "done")
})
yes<Equal<Skill.SkillTypes.Progress<typeof loads>, { readonly percent: number }>>()
yes<Equal<Skill.SkillTypes.Output<typeof loads>, string>>()
export const misreports = Skill.make("misreports", {
  description: "",
  input: Schema.Struct({}),
  progress: Schema.Struct({ percent: Schema.Number }),
  // @ts-expect-error the skill reports a percentage
  execute: (_, { progress }) => progress({ part: 1 })
})

// ---------------------------------------------------------------- policies

const pays = Skill.make("pays", {
  description: "",
  input: Schema.Struct({ amount: Schema.FiniteFromString, due: Schema.Date }),
  execute: () => Effect.as(Library, "paid")
})
const limited = Policy.for(pays, ({ amount, due }, { caller, context }) => {
  yes<Equal<typeof amount, number>>()
  yes<Equal<typeof due, Date>>()
  return amount > 100 && context["isOpen"] === true && caller?.id !== "eva" ? Policy.confirm("?") : Policy.allowed
})
// The policy needs what decodes the input, and not what executes the skill.
yes<Equal<ReturnType<typeof limited>, Effect.Effect<Policy.Decision>>>()
export const answered = Policy.layer(Policy.for(pays, () => Calendar.use(() => Effect.succeed(Policy.allowed))))
yes<Equal<typeof answered, Layer.Layer<never, never, Calendar>>>()
// @ts-expect-error the skill has no such field
export const misspelt = Policy.for(pays, ({ amout }) => (amout === 1 ? Policy.allowed : Policy.denied("")))

import { writeFile } from "node:fs/promises"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import {
  Agent,
  Chat,
  ChatHistory,
  Content,
  Hooks,
  Kernel,
  Limits,
  Media,
  Memory,
  Message,
  Policy,
  PromptPipeline,
  MediaStore,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { folder } from "./support/folder.ts"
import { kernel } from "./support/kernel.ts"
import { agent, history, said } from "./support/chats.ts"

const chatting = (...skills: ReadonlyArray<Skill.AnySkill>) => Layer.merge(kernel(...skills), ChatHistory.layerMemory)

/** Every medium a model is shown: its address, or its bytes. */
const shown = ({ media, messages }: Provider.Request): Effect.Effect<ReadonlyArray<Uint8Array | string>> =>
  Effect.forEach(
    messages.flatMap(({ content }) => mediaOf(content)),
    ({ data, fileId = "", url }) => {
      const found = url ?? data
      return found === undefined
        ? Effect.orDie(Effect.catchTag(media.bytes(fileId), "MediaUnreadable", ({ reason }) => Effect.succeed(reason)))
        : Effect.succeed(found)
    }
  )

const mediaOf = (parts: ReadonlyArray<Content.Content>): ReadonlyArray<Content.MediaContent> =>
  parts.flatMap((part) => (part.type === "tool_result" ? mediaOf(part.content) : Content.isMedia(part) ? [part] : []))

describe("Chat (AC-24)", () => {
  it.effect("answers each message with the conversation so far, and keeps both sides in order", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("Hello Ada.", "You are Ada.")
      const first = yield* Chat.chat(agent, "I am Ada.", { provider })
      assert.strictEqual(first.text, "Hello Ada.")
      const second = yield* Chat.chat(agent, "Who am I?", { provider })
      assert.strictEqual(second.text, "You are Ada.")
      assert.deepStrictEqual(said(provider.messagesAt(1)), [
        "system: Talk.",
        "user: I am Ada.",
        "assistant: Hello Ada.",
        "user: Who am I?"
      ])
      assert.deepStrictEqual(said(yield* history), [
        "user: I am Ada.",
        "assistant: Hello Ada.",
        "user: Who am I?",
        "assistant: You are Ada."
      ])
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("reads the whole history once for each message", () =>
    Effect.gen(function* () {
      let reads = 0
      const memory = yield* ChatHistory.makeMemory()
      const toArray = Effect.tap(memory.toArray, () => Effect.sync(() => reads++))
      const provider = MockProvider.make("Hello Ada.", "You are Ada.")
      const chat = (text: string) =>
        Effect.provideService(Chat.chat(agent, text, { provider }), ChatHistory.ChatHistory, { ...memory, toArray })
      yield* chat("I am Ada.")
      yield* chat("Who am I?")
      assert.strictEqual(reads, 2)
      assert.strictEqual(yield* memory.size, 4)
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("reads an earlier message once for all runs that follow it", () =>
    Effect.gen(function* () {
      let reads = 0
      const counted = {
        type: "text" as const,
        get text() {
          reads++
          return "I am Ada."
        }
      }
      yield* ChatHistory.ChatHistory.use((history) => history.append({ role: "user", content: [counted] }))
      const readsOf = (input: string) =>
        Effect.suspend(() => {
          const before = reads
          return Effect.map(Chat.chat(agent, input, { provider: MockProvider.make("Yes.") }), () => reads - before)
        })
      assert.isAbove(yield* readsOf("1"), 0)
      assert.strictEqual(yield* readsOf("2"), 0)
      assert.strictEqual(yield* readsOf("3"), 0)
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("streams the same run, with the result in the last event", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("One.", "Two.")
      const events = yield* Stream.runCollect(Chat.chatStream(agent, "1", { provider }))
      const last = events.at(-1)
      assert.strictEqual(last?.type === "run_completed" && last.result?.text, "One.")
      yield* Stream.runDrain(Chat.chatStream(agent, "2", { provider }))
      assert.deepStrictEqual(said(yield* history), ["user: 1", "assistant: One.", "user: 2", "assistant: Two."])
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("keeps the user's message when a run fails, and does not repeat it on a second attempt", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("", "Here.", "Twice?").failOnStep(0)
      const failure = yield* Effect.flip(Chat.chat(agent, "Are you there?", { provider, runId: "a" }))
      assert.strictEqual(failure._tag, "ProviderError")
      assert.deepStrictEqual(said(yield* history), ["user: Are you there?"])
      const result = yield* Chat.chat(agent, "Are you there?", { provider, runId: "a" })
      assert.strictEqual(result.text, "Here.")
      assert.deepStrictEqual(said(provider.messagesAt(1)), ["system: Talk.", "user: Are you there?"])
      // Asked a third time, the answer is the one that was given.
      const again = yield* Chat.chat(agent, "Are you there?", { provider, runId: "a" })
      assert.strictEqual(again.text, "Here.")
      assert.deepStrictEqual(said(yield* history), ["user: Are you there?", "assistant: Here."])
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("does not send the message to the model twice when the first run never started", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("Here.")
      const before = [Message.user("Hello?"), Message.assistant("Hi.")]
      yield* ChatHistory.ChatHistory.use((history) => history.append(before, "x"))
      // A process that died between the two steps.
      yield* ChatHistory.ChatHistory.use((history) => history.append(Message.user("Hello?"), "a"))
      yield* Chat.chat(agent, "Hello?", { provider, runId: "a" })
      assert.deepStrictEqual(said(provider.messagesAt(0)), [
        "system: Talk.",
        "user: Hello?",
        "assistant: Hi.",
        "user: Hello?"
      ])
    }).pipe(Effect.provide(chatting()))
  )

  it.effect(
    "does not repeat a message whose file could be read only at the first attempt, and shows earlier media",
    () =>
      Effect.gen(function* () {
        const seen: Array<Uint8Array | string> = []
        const provider = MockProvider.make().onCall((request) =>
          Effect.map(shown(request), (media) => (seen.push(...media), "Here."))
        )
        const image = (fill: number) => Content.image({ data: new Uint8Array([fill]), mediaType: "image/png" })
        const seeing = Agent.make({ instructions: "", model: { id: "m", capabilities: ["text", "vision"] } })
        const kept = yield* ChatHistory.makeMemory([Message.user([image(1)]), Message.assistant("A dot.")])
        yield* kept.append(Message.user([Content.text("Look:"), image(2)]), "a")
        yield* Effect.provideService(
          Chat.chat(seeing, ["Look:", Media.fromPath("nowhere.png")], { provider, runId: "a" }),
          ChatHistory.ChatHistory,
          kept
        )
        const messages = provider.messagesAt(0) ?? []
        assert.deepStrictEqual(
          messages.map(({ role }) => role),
          ["user", "assistant", "user"]
        )
        assert.deepStrictEqual(seen, [new Uint8Array([1]), "no file system is available"])
        // By the id its run knows it by (W-21).
        assert.isDefined(mediaOf(messages[0]?.content ?? [])[0]?.fileId)
      }).pipe(Effect.provide(chatting()))
  )

  it.effect("retries a message after later ones were answered, and sends it once and last", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("It is noon.", "It is Ada.")
      yield* ChatHistory.ChatHistory.use((history) => history.append(Message.user("Who is it?"), "a"))
      yield* Chat.chat(agent, "What time is it?", { provider, runId: "b" })
      yield* Chat.chat(agent, "Who is it?", { provider, runId: "a" })
      assert.deepStrictEqual(said(provider.messagesAt(1)), [
        "system: Talk.",
        "user: What time is it?",
        "assistant: It is noon.",
        "user: Who is it?"
      ])
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("answers concurrent messages of one history one after another, streams included", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const provider = MockProvider.make().onCall((request, call) =>
        call === 0
          ? Effect.as(Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(go)), "first")
          : `after ${request.messages.length} messages`
      )
      const first = yield* Effect.forkChild(Stream.runDrain(Chat.chatStream(agent, "1", { provider })))
      yield* Deferred.await(asked)
      const second = yield* Effect.forkChild(Chat.chat(agent, "2", { provider }))
      const reset = yield* Effect.forkChild(Chat.reset)
      for (let index = 0; index < 20; index++) yield* Effect.yieldNow
      assert.strictEqual(provider.callCount, 1)
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(first)
      assert.strictEqual((yield* Fiber.join(second)).text, "after 4 messages")
      yield* Fiber.join(reset)
      assert.deepStrictEqual(yield* history, [])
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("lets the next message proceed when a stream is abandoned early", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("One.", "Two.")
      yield* Stream.runDrain(Stream.take(Chat.chatStream(agent, "1", { provider }), 1))
      assert.strictEqual((yield* Chat.chat(agent, "2", { provider })).text.length, 4)
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("pauses for a person and keeps the answer when the run continues (DR-22)", () => {
    const send = Skill.make("send", {
      description: "Sends",
      input: Schema.Struct({}),
      execute: () => Effect.succeed("sent")
    })
    return Effect.gen(function* () {
      const able = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })
      const provider = MockProvider.make({ calls: [{ id: "c", name: "send" }] }, "Done.")
      const paused = yield* Effect.flip(Chat.chat(able, "Send it.", { provider, runId: "a" }))
      assert.strictEqual(paused._tag, "RunPaused")
      assert.deepStrictEqual(said(yield* history), ["user: Send it."])
      const approvals = [{ callId: "c", approved: true }]
      yield* Stream.runDrain(Chat.resumeStream(able, "a", { provider, answers: approvals }))
      assert.deepStrictEqual(
        (yield* history).map((message) => message.role),
        ["user", "assistant", "tool", "assistant"]
      )
      // Asked for again, it is there once.
      yield* Chat.resume(able, "a", { provider })
      assert.lengthOf(yield* history, 4)
    }).pipe(
      Effect.provide(
        Layer.merge(
          chatting(send),
          Policy.layer(() => Effect.succeed(Policy.confirm("sure?")))
        )
      )
    )
  })

  it.effect("appends the question before its answer, even when the history was cleared while the run waited", () => {
    const send = Skill.make("send", {
      description: "Sends",
      input: Schema.Struct({}),
      execute: () => Effect.succeed("sent")
    })
    return Effect.gen(function* () {
      const able = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })
      const provider = MockProvider.make({ calls: [{ id: "c", name: "send" }] }, "Done.")
      const paused = yield* Effect.flip(Chat.chat(able, "Send it.", { provider, runId: "a" }))
      assert.strictEqual(paused._tag, "RunPaused")
      yield* Chat.reset
      yield* Chat.resume(able, "a", { provider, answers: [{ callId: "c", approved: true }] })
      const kept = yield* history
      assert.deepStrictEqual(
        kept.map((message) => message.role),
        ["user", "assistant", "tool", "assistant"]
      )
      // A history filled from elsewhere has no keys, and repeats nothing either.
      for (const since of [[], [Message.user("Still there?")]]) {
        const filled = yield* ChatHistory.makeMemory([...kept.slice(0, 1), ...since])
        yield* Effect.provideService(Chat.resume(able, "a", { provider }), ChatHistory.ChatHistory, filled)
        assert.deepStrictEqual(yield* filled.toArray, [...kept.slice(0, 1), ...since, ...kept.slice(1)])
      }
    }).pipe(
      Effect.provide(
        Layer.merge(
          chatting(send),
          Policy.layer(() => Effect.succeed(Policy.confirm("sure?")))
        )
      )
    )
  })

  it.effect("keeps the user's media in the history after the run has ended", () =>
    Effect.gen(function* () {
      const seen: Array<Uint8Array | string> = []
      const provider = MockProvider.make("A cat.").onCall((request, call) =>
        call === 0 ? undefined : Effect.map(shown(request), (bytes) => (seen.push(...bytes), "Still a cat."))
      )
      const seeing = Agent.make({ instructions: "", model: { id: "m", capabilities: ["text", "vision"] } })
      yield* Chat.chat(seeing, ["What is it?", Media.fromBytes(new Uint8Array([1, 2]), "image/png")], { provider })
      yield* Chat.chat(seeing, "Sure?", { provider })
      assert.deepStrictEqual(seen, [new Uint8Array([1, 2])])
      // However small, it is found by the id its first run gave it (W-21).
      const [image] = (provider.messagesAt(1) ?? []).flatMap(({ content }) => mediaOf(content))
      assert.match(image?.fileId ?? "", /^media_[0-9a-f]{12}$/)
    }).pipe(Effect.provide(chatting()))
  )

  for (const way of ["resume", "resumeStream", "chat", "chatStream"] as const) {
    it.effect(`shows a run continued by ${way} the media of its own message, whatever precedes it (CP-11)`, () =>
      Effect.gen(function* () {
        const sizes = [20, 20, 60]
        const image = (n: number) => Media.fromBytes(new Uint8Array(sizes[n] ?? 0).fill(n), "image/png")
        const seen: Array<ReadonlyArray<Uint8Array | string>> = []
        const provider = MockProvider.make().onCall((request, call) =>
          Effect.flatMap(shown(request), (media) => {
            seen.push(media)
            return call === 2
              ? Effect.fail(new Provider.ProviderError({ provider: "mock", reason: "server_error", detail: "down" }))
              : Effect.succeed(`Answer ${call}.`)
          })
        )
        const seeing = Agent.make({ instructions: "", model: { id: "m", capabilities: ["text", "vision"] } })
        yield* Chat.chat(seeing, ["One?", image(0)], { provider })
        yield* Chat.chat(seeing, ["Two?", image(1)], { provider })
        const asked = ["Three?", image(2)]
        yield* Effect.flip(Chat.chat(seeing, asked, { provider, runId: "a" }))
        // A file that was there when it was first asked.
        const again = ["Three?", Media.fromPath("gone.png")]
        yield* {
          resume: Chat.resume(seeing, "a", { provider }),
          resumeStream: Stream.runDrain(Chat.resumeStream(seeing, "a", { provider })),
          chat: Chat.chat(seeing, again, { provider, runId: "a" }),
          chatStream: Stream.runDrain(Chat.chatStream(seeing, again, { provider, runId: "a" }))
        }[way]
        const all = sizes.map((size, n) => new Uint8Array(size).fill(n))
        assert.deepStrictEqual(seen.slice(2), [all, all])
      }).pipe(Effect.provide(chatting()), Effect.provideService(Limits.Limits, { ...Limits.defaults, mediaBytes: 110 }))
    )
  }

  it.effect("gives the media of a message priority over those of earlier messages (CP-11)", () =>
    Effect.gen(function* () {
      const image = (size: number) => new Uint8Array(size).fill(size)
      const seen: Array<Uint8Array | string> = []
      const provider = MockProvider.make().onCall((request) =>
        Effect.map(shown(request), (media) => (seen.push(...media), "Both."))
      )
      const seeing = Agent.make({ instructions: "", model: { id: "m", capabilities: ["text", "vision"] } })
      const before = Message.user([Content.image({ data: image(45), mediaType: "image/png" })])
      yield* ChatHistory.ChatHistory.use((history) => history.append(before))
      yield* Chat.chat(seeing, ["And?", Media.fromBytes(image(60), "image/png")], { provider })
      assert.deepStrictEqual(seen, [image(45), image(60)])
    }).pipe(Effect.provide(chatting()), Effect.provideService(Limits.Limits, { ...Limits.defaults, mediaBytes: 100 }))
  )

  for (const [bounds, way] of [
    ["the program", "chat"],
    ["the kernel alone", "chat"],
    ["the kernel alone", "chatStream"]
  ] as const) {
    it.effect(`gives earlier media half of the room, only once: ${way} under limits of ${bounds} (CP-11)`, () => {
      const limits = Layer.succeed(Limits.Limits, { ...Limits.defaults, mediaBytes: 200_000 })
      const image = (fill: number, size: number) => Media.fromBytes(new Uint8Array(size).fill(fill), "image/png")
      const draw = Skill.make("draw", {
        description: "Draws",
        input: Schema.Struct({}),
        effects: "read",
        execute: () => Effect.succeed(image(9, 90_000))
      })
      const kernel = chatting(draw)
      return Effect.gen(function* () {
        const said = [1, 2].map((fill) => {
          const { source } = image(fill, 80_000)
          const data = source._tag === "Bytes" ? source.bytes : new Uint8Array()
          return Message.make("user", [Content.image({ data, mediaType: "image/png" })])
        })
        yield* ChatHistory.ChatHistory.use((history) => history.append(said, "before"))
        const model = { id: "m", capabilities: ["text", "vision"] } as const
        const able = Agent.make({ instructions: "", model, skills: "all", dialect: "tools" })
        const provider = MockProvider.make({ calls: [{ id: "c", name: "draw" }] }, "Drawn.")
        yield* way === "chat"
          ? Chat.chat(able, "Draw.", { provider })
          : Stream.runDrain(Chat.chatStream(able, "Draw.", { provider }))
        const drawn = (provider.messagesAt(1) ?? []).flatMap(({ content }) => content)
        assert.deepStrictEqual(
          drawn.flatMap((part) => (part.type === "tool_result" ? [part.isError] : [])),
          [false]
        )
        const all = (provider.messagesAt(0) ?? []).flatMap(({ content }) => mediaOf(content))
        assert.deepStrictEqual(
          all.map((part) => [part.fileId !== undefined, part.data !== undefined]),
          [
            [true, false],
            [false, true]
          ]
        )
      }).pipe(Effect.provide(bounds === "the program" ? Layer.merge(kernel, limits) : Layer.provide(kernel, limits)))
    })
  }

  it.effect(
    "keeps media made by a skill and the contents of files, from a stream and after a pause too (CP-11)",
    () => {
      const drawn = new Uint8Array([1, 2])
      const draw = Skill.make("draw", {
        description: "Draws",
        input: Schema.Struct({}),
        execute: () => Effect.succeed(Media.fromBytes(drawn, "image/png"))
      })
      const find = Skill.make("find", {
        description: "Finds",
        input: Schema.Struct({}),
        effects: "read",
        execute: () => Effect.succeed(Media.fromUrl("https://x.test/a.png"))
      })
      return Effect.gen(function* () {
        const album = yield* folder
        const photo = new Uint8Array([3, 4])
        yield* Effect.promise(() => writeFile(`${album}/cat.png`, photo))
        const seen: Array<ReadonlyArray<Uint8Array | string>> = []
        const calls = (name: string) => ({ calls: [{ id: "c", name }] })
        const replies = ["A cat.", calls("draw"), "Drawn.", calls("find"), "Found.", "All of them."]
        const provider = MockProvider.make().onCall((request, call) =>
          Effect.map(shown(request), (media) => (seen.push(media), replies[call] ?? ""))
        )
        const model = { id: "m", capabilities: ["text", "vision"] } as const
        const able = Agent.make({ instructions: "", model, skills: "all", dialect: "tools" })
        const files = MediaStore.layerMemoryWith({ root: album }).pipe(Layer.provide(NodeServices.layer))
        const layer = Kernel.layerNoProvider.pipe(
          Layer.provide([SkillRegistry.layer(draw, find), ProtocolRegistry.layer(), files, RunStore.layerMemory]),
          Layer.provideMerge(ChatHistory.layerMemory)
        )
        yield* Effect.gen(function* () {
          yield* Chat.chat(able, ["What is it?", Media.fromPath("cat.png")], { provider })
          const asked = yield* Effect.flip(Chat.chat(able, "Draw it.", { provider, runId: "a" }))
          assert.strictEqual(asked._tag, "RunPaused")
          yield* Chat.resume(able, "a", { provider, answers: [{ callId: "c", approved: true }] })
          yield* Stream.runDrain(Chat.chatStream(able, "Find another.", { provider }))
          yield* Chat.chat(able, "Which of them?", { provider })
          assert.deepStrictEqual(seen.at(-1), [photo, drawn, "https://x.test/a.png"])
          assert.notInclude(JSON.stringify((yield* history).map(Message.encode)), "file_id")
        }).pipe(Effect.provide(Layer.merge(layer, Policy.layerRules({ default: "effects" }))))
      })
    }
  )

  it.effect("keeps a placeholder for a file it cannot read", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("Nothing there.")
      yield* Chat.chat(agent, ["Look:", Media.fromPath("nowhere.png")], { provider })
      assert.deepStrictEqual((yield* history)[0]?.content.map(Content.toText), [
        "Look:",
        "[image unavailable: image/png]"
      ])
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("keeps what it can without access to the media store of a given kernel", () =>
    Effect.gen(function* () {
      const own = yield* Kernel.Kernel
      const seeing = Agent.make({ instructions: "", model: { id: "m", capabilities: ["text", "vision"] } })
      const provider = MockProvider.make("A cat.", "Two.", "Three.")
      const listed = ["Look:", Media.fromUrl("https://x.test/a.png"), Media.fromPath("cat.png")]
      const parts = ["text", "image", "text"] as const
      yield* Effect.gen(function* () {
        yield* Chat.chat(seeing, listed, { provider })
        yield* Stream.runDrain(Chat.chatStream(seeing, "How many?", { provider }))
        assert.strictEqual((yield* Chat.chat(seeing, "And now?", { provider })).text, "Three.")
      }).pipe(Effect.provideService(Kernel.Kernel, { ...own }))
      assert.deepStrictEqual(
        (yield* history).map(({ content }) => content.map(({ type }) => type)),
        [parts, ["text"], ["text"], ["text"], ["text"], ["text"]]
      )
      assert.include(said(yield* history)[0], "[image unavailable: image/png]")
    }).pipe(Effect.provide(chatting()))
  )

  it.effect("fails with the reason why a run finished without an answer, as a stream too", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("unheard")
      const finished = Stream.runDrain(Chat.chatStream(agent, "Anyone?", { provider }))
      assert.strictEqual((yield* Effect.flip(finished))._tag, "RunFinished")
      assert.deepStrictEqual(said(yield* history), ["user: Anyone?"])
    }).pipe(Effect.provide([chatting(), Hooks.layer({ onTurnPrepared: () => Effect.succeed(Hooks.finish("enough")) })]))
  )
})

describe("Chat with a Memory", () => {
  const remembered = Effect.gen(function* () {
    yield* Memory.Memory.use((memory) => memory.store({ content: "Ada likes tea." }))
    const provider = MockProvider.make("Tea?")
    yield* Chat.chat(agent, "What does Ada like?", { provider })
    return Message.text(provider.messagesAt(0)?.[0] ?? Message.system(""))
  })

  it.effect("recalls entries that match the message and adds them to the prompt", () =>
    Effect.gen(function* () {
      const system = yield* remembered
      assert.match(system, /^Talk\.\n\n<relevant_context>/)
      assert.include(system, "Ada likes tea.")
    }).pipe(Effect.provide(Layer.merge(chatting(), Memory.layerMemory)))
  )

  it.effect("recalls for a message that is answered as a stream, too", () =>
    Effect.gen(function* () {
      yield* Memory.Memory.use((memory) => memory.store({ content: "Ada likes tea." }))
      const provider = MockProvider.make("Tea?")
      yield* Stream.runDrain(Chat.chatStream(agent, "What does Ada like?", { provider }))
      assert.include(Message.text(provider.messagesAt(0)?.[0] ?? Message.system("")), "Ada likes tea.")
    }).pipe(Effect.provide(Layer.merge(chatting(), Memory.layerMemory)))
  )

  it.effect("recalls also when only the kernel was given the memory", () =>
    Effect.gen(function* () {
      const memory = yield* Memory.makeMemory
      yield* memory.store({ content: "Ada likes tea." })
      const provider = MockProvider.make("Tea?")
      const knowing = Layer.provide(Layer.fresh(kernel()), Layer.succeed(Memory.Memory, memory))
      yield* Effect.provide(
        Chat.chat(agent, "What does Ada like?", { provider }),
        Layer.merge(knowing, ChatHistory.layerMemory)
      )
      assert.include(Message.text(provider.messagesAt(0)?.[0] ?? Message.system("")), "Ada likes tea.")
    })
  )

  it.effect("leaves a pipeline of the host unchanged, wherever it is provided", () =>
    Effect.gen(function* () {
      const own = PromptPipeline.layer({ sections: [() => Effect.succeed("MINE")] })
      const here = yield* remembered.pipe(Effect.provide(Layer.merge(own, chatting())))
      const built = yield* remembered.pipe(
        Effect.provide(Layer.merge(Layer.fresh(kernel()).pipe(Layer.provide(own)), ChatHistory.layerMemory))
      )
      assert.deepStrictEqual([here, built], ["Talk.\n\nMINE", "Talk.\n\nMINE"])
    }).pipe(Effect.provide(Memory.layerMemory))
  )

  it.effect("is not asked in a run outside a chat", () =>
    Effect.gen(function* () {
      yield* Memory.Memory.use((memory) => memory.store({ content: "Ada likes tea." }))
      const provider = MockProvider.make("Tea?")
      yield* Kernel.run(agent, "What does Ada like?", { provider })
      assert.deepStrictEqual(said(provider.messagesAt(0)?.slice(0, 1)), ["system: Talk."])
    }).pipe(Effect.provide(Layer.merge(kernel(), Memory.layerMemory)))
  )
})

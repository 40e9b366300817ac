import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue, Stream } from "effect"
import * as Block from "../src/Block.ts"
import * as BlockParser from "../src/BlockParser.ts"
import { LimitExceeded } from "../src/KernelError.ts"
import * as Limits from "../src/Limits.ts"
import { complete, content, feed, merged, reading, start } from "./support/parts.ts"

/** What a text holds, whole and in pieces of 1 to 7 units: the same, or the test fails. */
const found = (input: string) => {
  const { blocks, text } = BlockParser.parse(input)
  for (let size = 1; size <= 7; size++) {
    const cut = Array.from({ length: Math.ceil(input.length / size) }, (_, i) => input.slice(i * size, (i + 1) * size))
    const pieces = reading(feed(cut).parts)
    assert.deepStrictEqual([pieces.blocks, pieces.text], [blocks, text], `in pieces of ${size}`)
  }
  return { blocks, text }
}
const isText = (input: string) => assert.deepStrictEqual(found(input), { blocks: [], text: input })

describe("opening tags", () => {
  it("keep white space as written, newlines included (BP-2)", () => {
    for (const tag of [
      '<block type="t" name="n">',
      '<block\ttype="t"\nname="n">',
      '<block \r\n\v\f type="t"  name="n"  >',
      '<block type="t" name="n"\n>'
    ]) {
      assert.deepStrictEqual(found(`${tag}x</block>`).blocks, [Block.make("t", "n", "x")], tag)
    }
    isText('<block\u00a0type="t">x')
    isText('<block\ufefftype="t">x')
  })

  it("use values literally, without trimming, decoding or escapes (BP-3, BP-6)", () => {
    for (const value of [" t ", "a>b", "&lt;", "a\\", "\n", "FINAL", "😀", "</block>", "<final>"]) {
      assert.deepStrictEqual(found(`<block type="${value}" name="${value}">x</block>`).blocks, [
        Block.make(value, value, "x")
      ])
    }
    isText('<block type="">x</block>')
  })

  it("are plain text when they are malformed (BP-4)", () => {
    for (const tag of [
      '<block name="n" type="t">',
      "<block type='t'>",
      "<block type=t>",
      "<block type=“t”>",
      '<block type ="t">',
      '<block type= "t">',
      '<block type="t" name ="n">',
      '<block type="t" id="1">',
      '<block type="t" name="n" name="m">',
      '<block type="t" type="u">',
      '<block type="t"name="n">',
      '<block type="t"/>',
      '<block type="t" name="n"/>',
      '<Block type="t">',
      '<block Type="t">',
      '<block type="t" Name="n">',
      '< block type="t">',
      "<block>",
      "<block >",
      '<blocktype="t">',
      '<block name="n">'
    ]) {
      isText(`${tag}x</block>`)
    }
  })

  it("distinguish an empty name from a missing one (BP-5)", () => {
    assert.deepStrictEqual(found('<block type="t" name="">x</block>').blocks, [Block.make("t", "", "x")])
    assert.deepStrictEqual(found('<block type="t">x</block>').blocks, [Block.make("t", null, "x")])
  })

  it("have a shorthand for the six core types only (BP-7)", () => {
    for (const type of Block.coreTypes) {
      assert.deepStrictEqual(found(`<${type}>x</${type}>`).blocks, [Block.make(type, null, "x")])
      assert.deepStrictEqual(found(`<${type}\tname="n" >x</${type}>`).blocks, [Block.make(type, "n", "x")])
    }
    for (const tag of ["media", "mcp", "Final", "finals", "fina", "block"]) isText(`<${tag}>x</${tag}>`)
    for (const tag of ['<final type="x">', '<final id="x">', "<final/>", '<finalname="x">', "< final>"]) {
      isText(`${tag}x</final>`)
    }
  })

  it("may directly follow a malformed tag, or appear in its quoted values (BP-15, W-1)", () => {
    const final = [Block.final("x")]
    for (const before of [
      "<",
      "<<",
      "if a < b then ",
      "<blockquote>",
      "<block type=x>",
      "<block ",
      '<block type="',
      '<block type="t" ',
      '<block type="t" name="',
      '<block type="t',
      "<fin",
      "<final",
      "<command name=",
      "</block>",
      '<block type="a" ?'
    ]) {
      assert.deepStrictEqual(found(`${before}<final>x</final>`), { blocks: final, text: before }, before)
    }
    assert.deepStrictEqual(found('<block type="<block type="final">x</block>'), {
      blocks: final,
      text: '<block type="'
    })
  })
})

describe("content", () => {
  it("ends at the exact closing tag only (BP-8)", () => {
    for (const inner of ["</block >", "</BLOCK>", "</blockx>", "< /block>", "</ block>", "</final>", "</block", "<"]) {
      const close = inner === "</block" ? ">" : "</block>"
      const rest = inner === "</block" ? "" : inner
      assert.deepStrictEqual(found(`<block type="t">${inner}${close}`).blocks, [Block.make("t", null, rest)], inner)
    }
    assert.deepStrictEqual(found("<final>a</final ></Final></fina</final>").blocks, [
      Block.final("a</final ></Final></fina")
    ])
  })

  it("is preserved byte for byte (BP-9)", () => {
    const bytes = " \r\n\t&lt;\0\u00a0\ufeffé😀\ud800 a\udc00 \n"
    assert.deepStrictEqual(found(`<final>${bytes}</final>`).blocks, [Block.final(bytes)])
    assert.deepStrictEqual(found(`<block type="t">${bytes}</block>`).blocks, [Block.make("t", null, bytes)])
  })

  it("counts nested opening tags in canonical form, valid or not (BP-10)", () => {
    for (const inner of [
      '<block type="u">y</block>',
      "<block>y</block>",
      "<block\ny</block>",
      '{"q":"<block type=\\"u\\">y</block>"}',
      "<block <block >a</block>b</block>",
      "<blockquote><blocks><block/><block",
      "<final>"
    ]) {
      assert.deepStrictEqual(found(`<block type="t">${inner}</block> after`), {
        blocks: [Block.make("t", null, inner)],
        text: " after"
      })
    }
  })

  it("of a shorthand block does not nest (BP-11)", () => {
    assert.deepStrictEqual(found('<final><final><block type="t"></final></final>'), {
      blocks: [Block.final('<final><block type="t">')],
      text: "</final>"
    })
  })

  it("of an unclosed block does not form a block (BP-12, W-7)", () => {
    for (const input of [
      "<final>x",
      '<block type="final">x</final>',
      '<block type="final">a <block type="t">b</block>'
    ]) {
      assert.deepStrictEqual(found(input).blocks, [])
    }
  })

  it("that mentions only an opening tag stays open to the end (BP-10, W-6)", () => {
    const input = '<block type="final">write <block type="command"> to act</block> <final>y</final>'
    assert.deepStrictEqual(BlockParser.parse(input), {
      blocks: [],
      text: "",
      textSegments: [],
      unclosed: Block.final(input.slice(20)),
      failure: undefined
    })
  })
})

describe("parse", () => {
  it("returns blocks, text and the segments that are not blank (BP-13, BP-28)", () => {
    assert.deepStrictEqual(BlockParser.parse(" a <final>x</final>\n \0<plan>y</plan>\u00a0</block> "), {
      blocks: [Block.final("x"), Block.plan("y")],
      text: " a \n \0\u00a0</block> ",
      textSegments: [" a ", "\u00a0</block> "],
      unclosed: undefined,
      failure: undefined
    })
  })

  it("handles nesting as the stream does (BP-29)", () => {
    assert.deepStrictEqual(BlockParser.parse('<block type="t">a<block >b</block>c</block>').blocks, [
      Block.make("t", null, "a<block >b</block>c")
    ])
  })

  it("finds no blocks in empty text", () => {
    assert.deepStrictEqual(BlockParser.parse(""), {
      blocks: [],
      text: "",
      textSegments: [],
      unclosed: undefined,
      failure: undefined
    })
  })
})

describe("stream", () => {
  const collect = <E>(stream: Stream.Stream<BlockParser.Part, E>) => Effect.map(Stream.runCollect(stream), merged)

  it.effect("turns chunks into parts and flushes at the end (BP-18, BP-25)", () =>
    Effect.gen(function* () {
      const pieces = Stream.make("a<fi", "nal>x</final>b<plan>", "y</pl")
      const events = [
        ["text", "a"],
        ["start", "final", null],
        ["content", "x"],
        ["block", "final", null, "x"],
        ["text", "b"],
        ["start", "plan", null],
        ["content", "y</pl"],
        ["unclosed", "plan", null, "y</pl"]
      ]
      assert.deepStrictEqual(yield* pieces.pipe(BlockParser.stream, collect), events)
      assert.deepStrictEqual(yield* pieces.pipe(Stream.rechunk(1), BlockParser.stream, collect), events)
      assert.deepStrictEqual(yield* collect(BlockParser.stream(pieces, { tagLength: 100 })), events)
    })
  )

  it.effect("starts with fresh state each time it runs (BP-27)", () =>
    Effect.gen(function* () {
      const parts = Stream.make("<final>x").pipe(BlockParser.stream)
      assert.deepStrictEqual(yield* collect(parts), yield* collect(parts))
    })
  )

  it.effect("ends when its source is empty", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Stream.empty.pipe(BlockParser.stream, collect), [])
      assert.deepStrictEqual(yield* Stream.make("", "").pipe(Stream.rechunk(1), BlockParser.stream, collect), [])
    })
  )

  it.effect("emits what precedes a limit, then fails with a typed error (BP-26)", () =>
    Effect.gen(function* () {
      const seen: Array<BlockParser.Part> = []
      const pieces = Stream.make("<final>x</final>", '<block type="t"><block >', "never").pipe(Stream.rechunk(1))
      const exit = yield* BlockParser.stream(pieces, { blockDepth: 1 }).pipe(
        Stream.runForEach((part) => Effect.sync(() => seen.push(part))),
        Effect.exit
      )
      assert.deepStrictEqual(exit, Exit.fail(new LimitExceeded({ limit: "block nesting", value: 1 })))
      assert.deepStrictEqual(seen, [start("final"), content("x"), complete("final", "x"), start("t")])
    })
  )

  it.effect("fails with a typed error when a limit turns out to be exceeded only at the end (BP-26)", () =>
    Effect.gen(function* () {
      const pieces = Stream.make('<block type="<block type=" name=">x<block ')
      const failure = yield* Effect.flip(Stream.runDrain(BlockParser.stream(pieces, { blockDepth: 1 })))
      assert.deepStrictEqual(failure, new LimitExceeded({ limit: "block nesting", value: 1 }))
    })
  )

  it.effect("uses the limits of the context it runs in", () =>
    Effect.gen(function* () {
      const failure = yield* Stream.make("too long").pipe(
        BlockParser.stream,
        Stream.runDrain,
        Effect.provideService(Limits.Limits, { ...Limits.defaults, replyLength: 3 }),
        Effect.flip
      )
      assert.deepStrictEqual(failure, new LimitExceeded({ limit: "reply", value: 3 }))
    })
  )

  it.effect("flushes nothing when the source fails (R-10)", () =>
    Effect.gen(function* () {
      const seen: Array<BlockParser.Part> = []
      const failure = yield* Stream.make("<final>x</fi").pipe(
        Stream.concat(Stream.fail("reset")),
        BlockParser.stream,
        Stream.runForEach((part) => Effect.sync(() => seen.push(part))),
        Effect.flip
      )
      assert.strictEqual(failure, "reset")
      assert.deepStrictEqual(seen, [start("final"), content("x")])
    })
  )

  it.effect("pulls the end of its source only once", () =>
    Effect.gen(function* () {
      let ends = 0
      const source = Stream.make("<final>x").pipe(Stream.onEnd(Effect.sync(() => (ends += 1))))
      yield* source.pipe(BlockParser.stream, Stream.runDrain)
      assert.strictEqual(ends, 1)
    })
  )

  it.effect("emits each part before it pulls more", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const seen: Array<BlockParser.Part> = []
      const fiber = yield* Stream.fromQueue(pieces).pipe(
        BlockParser.stream,
        Stream.runForEach((part) => Effect.sync(() => seen.push(part))),
        Effect.forkChild({ startImmediately: true })
      )
      for (const [piece, count] of [
        ["a", 1],
        ["<fin", 1],
        ["al>", 2],
        ["b", 3],
        ["</final>", 4]
      ] as const) {
        yield* Queue.offer(pieces, piece)
        yield* Effect.yieldNow
        yield* Effect.yieldNow
        assert.strictEqual(seen.length, count, piece)
      }
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(seen.at(-1), complete("final", "b"))
    })
  )
})

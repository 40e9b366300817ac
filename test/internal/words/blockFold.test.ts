import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import * as Block from "../../../src/Block.ts"
import * as BlockParser from "../../../src/BlockParser.ts"
import { LimitExceeded } from "../../../src/KernelError.ts"
import {
  complete,
  content,
  counted,
  faults,
  feed,
  merged,
  reading,
  start,
  text,
  unclosed
} from "../../support/parts.ts"
import { read } from "../../support/secondReader.ts"
import { cases } from "../../support/property.ts"
import { times } from "../../support/longRun.ts"

describe("push", () => {
  it("emits a block as it arrives: its start, its pieces, the whole (BP-18)", () => {
    const parser = BlockParser.make()
    assert.deepStrictEqual(parser.push('Hi <block type="plan" name="p'), [text("Hi ")])
    assert.deepStrictEqual(parser.push('">'), [start("plan", "p")])
    assert.deepStrictEqual(parser.push("one "), [content("one ")])
    assert.deepStrictEqual(parser.push("two</bl"), [content("two")])
    assert.deepStrictEqual(parser.push("ock> bye"), [complete("plan", "one two", "p"), text(" bye")])
    assert.deepStrictEqual(parser.flush(), [])
  })

  it("sends no content for an empty block (BP-18)", () => {
    assert.deepStrictEqual(BlockParser.make().push("<final></final>"), [start("final"), complete("final", "")])
  })

  it("never emits part of a closing tag, and holds back nothing else (BP-19)", () => {
    const parser = BlockParser.make()
    parser.push("<final>")
    assert.deepStrictEqual(parser.push("a<"), [content("a")])
    assert.deepStrictEqual(parser.push("/fina"), [])
    assert.deepStrictEqual(parser.push("cial"), [content("</finacial")])
    assert.deepStrictEqual(parser.push("</final"), [])
    assert.deepStrictEqual(parser.push(">"), [complete("final", "a</finacial")])
  })

  it("emits content at once when it turns out not to be a tag (BP-19)", () => {
    for (const [tag, end] of [
      ["<final>", "</final>"],
      ['<block type="t">', "</block>"]
    ] as const) {
      const parser = BlockParser.make()
      parser.push(tag)
      const told = ["a <x", "</x", "<blo", "g <", "y", "<?</", "?", "1 <<2 < 3", `${end}.`].map((piece) =>
        parser
          .push(piece)
          .map((part) => (part.type === "block_content" || part.type === "text_chunk" ? part.text : part.type))
          .join("|")
      )
      const held = end === "</block>" ? ["", "<blog "] : ["<blo", "g "]
      assert.deepStrictEqual(told, ["a <x", "</x", ...held, "<y", "<?", "</?", "1 <<2 < 3", "block_complete|."], tag)
    }
  })

  it("continues to stream after an inner tag (W-2)", () => {
    const parser = BlockParser.make()
    parser.push('<block type="t">')
    assert.deepStrictEqual(parser.push('a <block type="u">'), [content('a <block type="u">')])
    assert.deepStrictEqual(parser.push("b</block>c"), [content("b</block>c")])
    assert.deepStrictEqual(parser.push("</block>"), [complete("t", 'a <block type="u">b</block>c')])
  })

  it("reads what follows a block at once (BP-21)", () => {
    assert.deepStrictEqual(BlockParser.make().push("a<final>x</final>b<plan>y</plan><"), [
      text("a"),
      start("final"),
      content("x"),
      complete("final", "x"),
      text("b"),
      start("plan"),
      content("y"),
      complete("plan", "y")
    ])
  })

  it("holds back only what may still become a tag (BP-22)", () => {
    const parser = BlockParser.make()
    assert.deepStrictEqual(parser.push("a < b"), [text("a < b")])
    assert.deepStrictEqual(parser.push("a <b"), [text("a ")])
    assert.deepStrictEqual(parser.push("r>"), [text("<br>")])
    assert.deepStrictEqual(parser.push('<block type="x" '), [])
    assert.deepStrictEqual(parser.push("?"), [text('<block type="x" ?')])
  })

  it("never splits a surrogate pair between two pieces (BP-16)", () => {
    const parser = BlockParser.make()
    assert.deepStrictEqual(parser.push("a\ud83d"), [text("a")])
    assert.deepStrictEqual(parser.push("\ude00b<final>\ud83d"), [text("\ud83d\ude00b"), start("final")])
    assert.deepStrictEqual(parser.push("\ude00"), [content("\ud83d\ude00")])
    assert.deepStrictEqual(parser.push("\ud83d</final>\ud83d"), [
      content("\ud83d"),
      complete("final", "\ud83d\ude00\ud83d")
    ])
    assert.deepStrictEqual(parser.flush(), [text("\ud83d")])
  })

  it("emits nothing for an empty piece", () => {
    const parser = BlockParser.make()
    assert.deepStrictEqual(parser.push(""), [])
    parser.push("<fin")
    assert.deepStrictEqual(parser.push(""), [])
    assert.deepStrictEqual(parser.push("al>"), [start("final")])
    assert.deepStrictEqual(parser.push(""), [])
  })

  it("reads several pieces in one call like one piece", () => {
    const parser = BlockParser.make()
    assert.deepStrictEqual(parser.pushAll(["a", "", "b<fi", "nal>", "x", "y"]), [
      text("ab"),
      start("final"),
      content("xy")
    ])
    assert.deepStrictEqual(parser.pushAll(["z"]), [content("z")])
    assert.deepStrictEqual(parser.pushAll([]), [])
    const large = "x".repeat(50_000)
    assert.deepStrictEqual(merged(parser.pushAll([large, large, large, "</final>"])), [
      ["content", large.repeat(3)],
      ["block", "final", null, `xyz${large.repeat(3)}`]
    ])
  })
})

describe("state", () => {
  it("is text, tag_open or block_content (BP-17, BP-23)", () => {
    const parser = BlockParser.make()
    const states = ["a", "<", "b", "lock type=", '"t">', "x</block", ">", "y\ud83d", "<final>"].map((piece) => {
      parser.push(piece)
      return parser.state
    })
    assert.deepStrictEqual(states, [
      "text",
      "tag_open",
      "tag_open",
      "tag_open",
      "block_content",
      "block_content",
      "text",
      "text",
      "block_content"
    ])
    parser.flush()
    assert.strictEqual(parser.state, "text")
  })

  it("is discarded by reset without an event (BP-23)", () => {
    const parser = BlockParser.make({ replyLength: 20 })
    for (const piece of ["<fin", "<final>abc", "\ud83d", "x".repeat(21)]) {
      parser.push(piece)
      parser.reset()
      assert.strictEqual(parser.state, "text")
      assert.isUndefined(parser.failure)
      assert.deepStrictEqual(
        [...parser.push("<final>y</final>"), ...parser.flush()],
        [start("final"), content("y"), complete("final", "y")]
      )
    }
  })
})

describe("flush", () => {
  it("emits an unclosed tag as one text (BP-24)", () => {
    for (const held of ["<", "<fin", '<block type="a', '<block type="a" name="b', '<block type="a < b"']) {
      const parser = BlockParser.make()
      assert.deepStrictEqual(parser.push(held), [])
      assert.deepStrictEqual(parser.flush(), [text(held)])
      assert.deepStrictEqual(parser.flush(), [])
    }
  })

  it("finds blocks after a quote that never closed (BP-15)", () => {
    const parser = BlockParser.make()
    assert.deepStrictEqual(parser.push('<block type="oops <final>x</final> and <plan>y'), [])
    assert.deepStrictEqual(parser.flush(), [
      text('<block type="oops '),
      start("final"),
      content("x"),
      complete("final", "x"),
      text(" and "),
      start("plan"),
      content("y"),
      unclosed("plan", "y")
    ])
  })

  it("emits a truncated block as unclosed, never as prose (BP-25, W-7)", () => {
    const parser = BlockParser.make()
    parser.push('<block type="command" name="write">{"text":"ab')
    assert.deepStrictEqual(parser.push("c</blo"), [content("c")])
    assert.deepStrictEqual(parser.flush(), [content("</blo"), unclosed("command", '{"text":"abc</blo', "write")])
    assert.strictEqual(parser.state, "text")
    assert.deepStrictEqual(parser.push("x"), [text("x")])
  })

  it("emits nothing when only text was pushed", () => {
    const parser = BlockParser.make()
    parser.push("abc")
    assert.deepStrictEqual(parser.flush(), [])
  })
})

describe("limits (BP-26)", () => {
  it("turn a tag beyond its limit into text, wherever the chunks are cut", () => {
    const tag = '<block type="abc" name="d">'
    for (const size of [1, 3, tag.length, 1000]) {
      const cut = (input: string) => input.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []
      const fits = feed(cut(`${tag}x</block>`), { tagLength: tag.length })
      assert.deepStrictEqual(reading(fits.parts).blocks, [Block.make("abc", "d", "x")])
      const tooLong = feed(cut(`${tag}x</block>`), { tagLength: tag.length - 1 })
      assert.deepStrictEqual(merged(tooLong.parts), [["text", `${tag}x</block>`]])
    }
  })

  it("release an endless tag as text as soon as it is too long", () => {
    for (const endless of ['<block type="', "<block  ", '<final name="']) {
      const parser = BlockParser.make()
      parser.push(endless)
      assert.deepStrictEqual(parser.push(" ".repeat(4096 - endless.length - 1)), [])
      assert.strictEqual(counted(parser.push(" ")).text, 4096)
      assert.strictEqual(parser.state, "text")
    }
  })

  it("fail with a typed error when blocks nest too deeply, wherever the chunks are cut", () => {
    const deep = `a<block type="t">${"<block >".repeat(31)}`
    assert.isUndefined(BlockParser.parse(deep).failure)
    const failure = new LimitExceeded({ limit: "block nesting", value: 32 })
    const input = `${deep}b<block >c`
    const answers = [1, 2, 7, 10_000].map((size) => feed(input.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []))
    for (const { failure: failed, parts } of answers) {
      assert.deepStrictEqual(failed, failure)
      assert.deepStrictEqual(merged(parts), [
        ["text", "a"],
        ["start", "t", null],
        ["content", `${"<block >".repeat(31)}b`]
      ])
    }
    assert.deepStrictEqual(BlockParser.parse(input).failure, failure)
  })

  it("do not count inner tags of a shorthand block", () => {
    assert.isUndefined(BlockParser.parse(`<final>${"<block >".repeat(100)}</final>`).failure)
  })

  it("fail with a typed error when a reply is too long, and keep the blocks before it", () => {
    const failure = new LimitExceeded({ limit: "reply", value: 10 })
    for (const cut of [["ab<final>cde"], ["ab<fi", "nal>cd", "e"], [..."ab<final>cde"], ["ab<final>c", "de"]]) {
      const { failure: failed, parts } = feed(cut, { replyLength: 10 })
      assert.deepStrictEqual(failed, failure)
      assert.deepStrictEqual(merged(parts), [
        ["text", "ab"],
        ["start", "final", null],
        ["content", "c"]
      ])
    }
    assert.isUndefined(feed(["ab<final>c"], { replyLength: 10 }).failure)
    assert.strictEqual(BlockParser.parse("x".repeat(8 * 1024 * 1024)).text.length, 8 * 1024 * 1024)
    assert.strictEqual(BlockParser.parse("x".repeat(8 * 1024 * 1024 + 1)).failure?.value, 8 * 1024 * 1024)
  })

  it("stop the parser once exceeded, until it is reset", () => {
    for (const bounds of [{ replyLength: 4 }, { blockDepth: 1, replyLength: Infinity }]) {
      const parser = BlockParser.make(bounds)
      parser.push('<block type="t"><block >')
      assert.isDefined(parser.failure)
      for (const piece of ["x", "</block></block>", "<final>y</final>"]) {
        assert.deepStrictEqual(parser.push(piece), [])
        assert.deepStrictEqual(parser.pushAll([piece, piece]), [])
      }
      assert.deepStrictEqual(parser.flush(), [])
      assert.isDefined(parser.failure)
    }
  })

  it("also apply to blocks that only a flush finds", () => {
    const parser = BlockParser.make({ blockDepth: 1 })
    assert.deepStrictEqual(parser.push('<block type="<block type=" name=">x<block '), [])
    assert.deepStrictEqual(parser.flush(), [text('<block type="'), start(" name="), content("x")])
    assert.deepStrictEqual(parser.failure, new LimitExceeded({ limit: "block nesting", value: 1 }))
  })
})

describe("any text, in any chunks", () => {
  const fragment = Arbitrary.schema(
    Schema.Literals([
      "<",
      ">",
      "/",
      '"',
      " ",
      "\n",
      "a",
      "é",
      "😀",
      "\ud83d",
      "\ude00",
      "block",
      "<block",
      "<block ",
      "<block>",
      "</block",
      "</block>",
      '<block type="final">',
      '<block type="mcp" name="x">',
      '<block\ttype="<final>" >',
      ' type="',
      ' name="',
      'type="t">',
      "<final>",
      "</final>",
      "<fin",
      '<command name="a">',
      "</command>",
      "<plan>",
      "</plan>",
      "<blockquote>",
      '{"q":"<block type=\\"x\\">"}'
    ])
  )
  const input = Arbitrary.map(Arbitrary.array(fragment, { maxLength: 24 }), (parts) => parts.join(""))
  const sizes = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))), {
    minLength: 1,
    maxLength: 6
  })

  /** Cuts by UTF-16 units, so also inside a surrogate pair; a size of zero is an empty piece. */
  const cut = (text: string, sizes: ReadonlyArray<number>) => {
    const pieces: Array<string> = []
    let at = 0
    for (let turn = 0; at < text.length; turn++) {
      const size = (sizes[turn % sizes.length] ?? 0) + (turn % sizes.length === 0 ? 1 : 0)
      pieces.push(text.slice(at, at + size))
      at += size
    }
    return pieces
  }

  it.prop(
    "gives the same blocks as a second parser, in whole code points (BP-15, BP-16, BP-18, R-12)",
    [input, sizes],
    ([text, sizes]) => {
      const pieces = cut(text, sizes)
      const { failure, parts } = feed(pieces)
      assert.isUndefined(failure)
      assert.deepStrictEqual(reading(parts), read(text))
      assert.deepStrictEqual(faults(parts), [])
      assert.deepStrictEqual(merged(parts), merged(feed([text]).parts))
      const parser = BlockParser.make()
      assert.deepStrictEqual(merged([...parser.pushAll(pieces), ...parser.flush()]), merged(parts))
    },
    cases()
  )

  it.prop(
    "gives the same blocks as a second parser under a tight limit for tags (BP-26)",
    [input, sizes],
    ([text, sizes]) => {
      const { parts } = feed(cut(text, sizes), { tagLength: 24 })
      assert.deepStrictEqual(reading(parts), read(text, 24))
    },
    cases()
  )

  it.prop(
    "fails with the same error in any chunks when limits are tight (BP-15, BP-26)",
    [input, sizes],
    ([text, sizes]) => {
      const bounds = { replyLength: 60, blockDepth: 2 }
      const whole = feed([text], bounds)
      const pieces = feed(cut(text, sizes), bounds)
      assert.deepStrictEqual(pieces.failure, whole.failure)
      assert.deepStrictEqual(merged(pieces.parts), merged(whole.parts))
    },
    cases()
  )
})

describe("hostile texts (BP-26, W-2, S-12)", () => {
  const size = times(1024 * 1024, 128 * 1024)
  const shapes: ReadonlyArray<readonly [string, ReturnType<typeof counted>]> = [
    ["<block ", { blocks: 0, text: size, unclosed: undefined }],
    ["<", { blocks: 0, text: size, unclosed: undefined }],
    ['"', { blocks: 0, text: size, unclosed: undefined }],
    ["</block", { blocks: 0, text: size, unclosed: undefined }],
    ['<block type="', { blocks: 0, text: size, unclosed: undefined }],
    ['<block type="x" name="', { blocks: 0, text: size, unclosed: undefined }],
    ['<final name="', { blocks: 0, text: size, unclosed: undefined }],
    ["<block type=", { blocks: 0, text: size, unclosed: undefined }]
  ]
  for (const [shape, expected] of shapes) {
    const input = shape.repeat(Math.ceil(size / shape.length)).slice(0, size)
    it(`${shape} repeated endlessly is text, whole and in chunks of 4`, () => {
      assert.deepStrictEqual(counted(feed([input]).parts), expected)
      assert.deepStrictEqual(counted(feed(input.match(/[^]{1,4}/g) ?? []).parts), expected)
    })
  }

  it("endless white space is text, whole and in chunks of 4", () => {
    const input = `<block${" ".repeat(size)}`
    assert.strictEqual(counted(feed([input]).parts).text, input.length)
    assert.strictEqual(counted(feed(input.match(/[^]{1,4}/g) ?? []).parts).text, input.length)
  })

  it("repeated tags inside a block are content, up to the nesting limit", () => {
    for (const shape of ["<", "</block", "</bloc", "</", "<bloc", '"']) {
      const inner = shape.repeat(size / 8)
      const input = `<block type="t">${inner}x</block>`
      for (const cut of [[input], input.match(/[^]{1,4}/g) ?? []]) {
        assert.deepStrictEqual(reading(feed(cut).parts).blocks, [Block.make("t", null, `${inner}x`)])
      }
    }
    assert.strictEqual(
      BlockParser.parse(`<block type="t">${"<block ".repeat(size / 8)}`).failure?.limit,
      "block nesting"
    )
  })

  it("thousands of blocks are emitted one by one", () => {
    const count = times(100_000, 20_000)
    const { blocks, textSegments } = BlockParser.parse('<final>x</final> <block type="t">y</block> '.repeat(count / 2))
    assert.strictEqual(blocks.length, count)
    assert.deepStrictEqual(textSegments, [])
  })

  it("small blocks of one large piece keep their content", () => {
    const name = "a name that is longer than a few letters"
    const inner = "some content, longer than a few letters"
    const input = `${"x".repeat(20_000)}<block type="${name}" name="${name}">${inner}</block>${"y".repeat(20_000)}`
    assert.deepStrictEqual(BlockParser.parse(input).blocks, [Block.make(name, name, inner)])
  })

  it("a block of very many pieces is emitted whole", () => {
    const count = times(1_000_000, 200_000)
    const parts = feed(["<final>", ...Array.from({ length: count }, (_, i) => String(i % 10)), "</final>"]).parts
    const [block] = reading(parts).blocks
    assert.strictEqual(block?.content, "0123456789".repeat(count / 10))
  })
})

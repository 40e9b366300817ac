/** The tokens of the page: one place for colors, with enough contrast in both themes. */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { root } from "../support/house.ts"

const folder = `${root}/src/studio/page/style`
const styles = new Map(readdirSync(folder).map((name) => [name, readFileSync(`${folder}/${name}`, "utf8")] as const))
const tokens = styles.get("tokens.css") ?? ""

/** Returns the light and the dark color of a token. */
const colorsOf = (name: string): readonly [light: number, dark: number] => {
  const value = new RegExp(`--${name}: ([^;]+);`).exec(tokens)?.[1] ?? ""
  const alias = /^var\(--(\w+)\)$/.exec(value)?.[1]
  if (alias !== undefined) return colorsOf(alias)
  const [light = 0, dark = light] = Array.from(value.matchAll(/oklch\(([\d.]+) ([\d.]+) ([\d.]+)\)/g), ([, l, c, h]) =>
    luminance(Number(l), Number(c), (Number(h) * Math.PI) / 180)
  )
  return [light, dark]
}

/** Returns the relative luminance of a color in OKLCH. */
const luminance = (lightness: number, chroma: number, hue: number): number => {
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)]
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  const red = 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s
  const green = -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s
  const blue = -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s
  const shown = (value: number) => Math.min(1, Math.max(0, value))
  return 0.2126 * shown(red) + 0.7152 * shown(green) + 0.0722 * shown(blue)
}

const contrast = (a: number, b: number): number => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)

const texts = ["text", "soft", "quiet", "accent", "running", "waiting", "done", "none", "error", "stopped"]
const codes = ["code-word", "code-text", "code-name"]

describe("the design of the page", () => {
  it("takes every color from the tokens", () => {
    for (const [name, text] of styles) {
      if (name !== "tokens.css")
        assert.deepStrictEqual(text.match(/#[0-9a-f]{3,8}\b|\b(?:oklch|rgb|hsl)a?\(/g), null, name)
    }
  })

  it("names only tokens that exist", () => {
    const defined = new Set(Array.from([...styles.values()].join("").matchAll(/(--[\w-]+)\s*:/g), ([, name]) => name))
    for (const [name, text] of styles) {
      for (const [, used = ""] of text.matchAll(/var\((--[\w-]+)\)/g))
        assert.isTrue(defined.has(used), `${name}: ${used}`)
    }
  })

  it("lays out each class in one file", () => {
    const places = new Map<string, string>()
    for (const [name, text] of styles) {
      for (const [, used = ""] of text.matchAll(/^\.([\w-]+) \{[^}]*display:/gm)) {
        assert.strictEqual(places.get(used) ?? name, name, used)
        places.set(used, name)
      }
    }
  })

  it("has texts and statuses of AA contrast on every background of both themes", () => {
    for (const back of ["back", "panel", "raised"]) {
      for (const text of [...texts, ...codes]) {
        colorsOf(text).forEach((color, theme) => {
          const ratio = contrast(color, colorsOf(back)[theme] ?? 0)
          assert.isAtLeast(ratio, 4.5, `${text} on ${back}, ${theme === 0 ? "light" : "dark"}`)
        })
      }
    }
    colorsOf("on-accent").forEach((color, theme) => {
      assert.isAtLeast(contrast(color, colorsOf("accent")[theme] ?? 0), 4.5)
    })
  })
})

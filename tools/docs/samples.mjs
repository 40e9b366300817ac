// Samples that run in the reader's browser: those that need the heart, a scripted model and effect, and nothing else.
// Each becomes a module for a worker in `assets/samples`, over one bundle of what all of them import.
import { build, transform } from "esbuild"
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** What a sample may import, and the module that has it. Of `kernai/testing`, the parts that need Node.js are left out. */
const sources = {
  effect: "effect",
  "effect/testing": "effect/testing",
  kernai: `${root}src/index.ts`,
  "kernai/guard": `${root}src/guard/index.ts`,
  "kernai/testing": `${root}src/testing/index.ts`
}
const fileOf = (specifier) => `../run/${specifier.replace("/", "-")}.js`

const importsOf = (text) =>
  [...text.matchAll(/^import (.+?) from "([^"]+)"/gms)].map(([, names, specifier]) => ({ names, specifier }))

const isRunnable = (text) => {
  const imports = importsOf(text)
  return (
    !/^(?:\/\/ Needs|export) /m.test(text) &&
    imports.some(({ specifier }) => specifier === "kernai") &&
    imports.every(({ names, specifier }) => specifier in sources && names.startsWith("{")) &&
    !/\bprocess\.|\b(?:CrashMatrix|Replay|RunStoreSuite)\b/.test(text)
  )
}

/** Samples of these pages that run in a browser, by their text, with the name of their module. */
export const runnable = (pages) => {
  const texts = pages.flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text]) => text.trim())
  )
  return new Map(
    texts.filter(isRunnable).map((text) => [text, createHash("sha256").update(text).digest("hex").slice(0, 12)])
  )
}

/** The module of a sample: its types are removed, its imports lead to the bundle, and what it prints goes to the page. */
const moduleOf = async (text) => {
  const { code } = await transform(text, { loader: "ts", target: "es2024" })
  const own = code.replaceAll(/(from\s*)"([^"]+)"/g, (_, from, specifier) => `${from}"${fileOf(specifier)}"`)
  return `import "../run/console.js"\n${own}postMessage({ ended: true })\n`
}

/** The names that the samples import from each module. */
const namesBySource = (texts) => {
  const found = new Map()
  for (const { names, specifier } of texts.flatMap(importsOf)) {
    const all = found.get(specifier) ?? new Set()
    for (const name of names.matchAll(/(?:type )?(\w+)/g)) if (!name[0].startsWith("type ")) all.add(name[1])
    found.set(specifier, all)
  }
  return found
}

const bundle = async (texts, assets) => {
  const entries = [...namesBySource(texts)].map(([specifier, names]) => [specifier, [...names].sort().join(", ")])
  const inputs = new Map(entries.map(([specifier, names]) => [`entry:${specifier}`, [sources[specifier], names]]))
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [...inputs.keys()].map((entry) => ({ in: entry, out: entry.slice(6).replace("/", "-") })),
    outdir: `${assets}/run`,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    target: "es2024",
    conditions: ["kernai-source"],
    minify: true,
    metafile: true,
    // Modules that need Node.js are dropped with what no sample uses.
    external: ["node:*"],
    logLevel: "error",
    plugins: [
      {
        name: "entries",
        setup: ({ onLoad, onResolve }) => {
          onResolve({ filter: /^entry:/ }, ({ path }) => ({ path, namespace: "entry" }))
          onLoad({ filter: /.*/, namespace: "entry" }, ({ path }) => {
            const [source, names] = inputs.get(path)
            return { contents: `export { ${names} } from ${JSON.stringify(source)}`, resolveDir: root, loader: "ts" }
          })
        }
      }
    ]
  })
  const needed = Object.values(metafile.outputs).flatMap(({ imports }) => imports.filter(({ external }) => external))
  if (needed.length > 0) throw new Error(`samples for a browser need ${needed.map(({ path }) => path).join(", ")}`)
}

/** Writes the modules of the samples and their bundle below the assets of the site. */
export const writeSamples = async (samples, assets) => {
  const texts = [...samples.keys()]
  mkdirSync(`${assets}/samples`, { recursive: true })
  await bundle(texts, assets)
  writeFileSync(`${assets}/run/console.js`, readFileSync(new URL("page/console.js", import.meta.url)))
  for (const [text, name] of samples) writeFileSync(`${assets}/samples/${name}.js`, await moduleOf(text))
}

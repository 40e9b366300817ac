// Builds the page of the studio with esbuild into src/studio/assets. The same sources give the same bytes on every machine,
// so the files are committed, and a plain clone runs them.
import { build } from "esbuild"
import { existsSync, realpathSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "../..")

/** Bundles the page. Returns the files by name. */
export const bundle = async () => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { page: "src/studio/page/main.tsx", charts: "src/studio/page/charts.ts", chat: "src/studio/page/guest.tsx", style: "src/studio/page/page.css" },
    outdir: "src/studio/assets",
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2023",
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    conditions: ["kernai-source"],
    write: false
  })
  return outputFiles.map(({ path, text }) => ({ name: path.endsWith(".css") ? "page.css" : basename(path), text }))
}

if (process.argv[1] !== undefined && existsSync(process.argv[1]) && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { writeFileSync } = await import("node:fs")
  for (const { name, text } of await bundle()) writeFileSync(join(root, "src/studio/assets", name), text)
}

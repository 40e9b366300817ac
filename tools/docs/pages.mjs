// Names modules as they are imported and pages by their first heading, groups pages by their folder and modules by their
// task, shows the header of each module, and lets the search find names such as `Kernel.run`.
import { readFileSync } from "node:fs"
import { Comment, CommentTag, Converter, IndexEvent, MinimalSourceFile, ReflectionKind } from "typedoc"

const groups = [
  [/docs\/recipes\//, "Recipes"],
  [/docs\/spec\//, "Specification"],
  [/\/(?:AGENTS|CHANGELOG|CONTRIBUTING|releasing)\.md$/, "Project"]
]

/** The first comment of a file, as Markdown; its tags are for editors. */
const headerOf = (text) => {
  const [, comment = ""] = /^\/\*\*(.*?)\*\//s.exec(text) ?? []
  return comment.replaceAll(/^ *\* ?(?:@.*)?/gm, "").trim()
}

const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1)

/** The headings of `src/index.ts`, each with the modules below it. */
export const tasks = readFileSync(new URL("../../src/index.ts", import.meta.url), "utf8")
  .split(/^\/\/ -+ /m)
  .slice(1)
  .map((section) => ({
    task: capitalized(section.slice(0, section.indexOf("\n"))),
    modules: [...section.matchAll(/^export \* as (\w+)/gm)].map(([, name]) => name)
  }))

const categoryTags = ({ comment, signatures = [] }) =>
  [comment, ...signatures.map((signature) => signature.comment)].flatMap((own) => own?.getTags("@category") ?? [])

const isHeart = (module) => module.kindOf(ReflectionKind.Module) && module.name === "kernai"

/** The heading under which a name stands in its module: the task of a module, the category of any other name. */
const headingOf = (reflection) => {
  if (reflection.isReference()) return headingOf(reflection.getTargetReflectionDeep())
  const own = tasks.find(({ modules }) => modules.includes(reflection.name))
  if (own !== undefined && isHeart(reflection.parent)) return own.task
  if (reflection.kindOf(ReflectionKind.Namespace) && reflection.parent.kindOf(ReflectionKind.Module)) return "Modules"
  const [tag] = categoryTags(reflection)
  if (tag !== undefined) return capitalized(Comment.combineDisplayParts(tag.content).trim())
  return reflection.kindOf([ReflectionKind.Interface, ReflectionKind.TypeAlias]) ? "Models" : undefined
}

const setHeading = (reflection, heading) => {
  for (const { comment } of [reflection, ...(reflection.signatures ?? [])]) comment?.removeTags("@category")
  reflection.comment ??= new Comment()
  reflection.comment.blockTags.push(new CommentTag("@category", [{ kind: "text", text: heading }]))
}

/** Registers the plugin. */
export const load = (app) => {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, page) => {
    const path = page.project.files.getReflectionPath(page) ?? ""
    const [, title] = /^#\s+(.+)$/m.exec(page.content.map(({ text }) => text).join("")) ?? []
    if (title === undefined) app.logger.warn(`${path} has no heading`)
    else page.name = title
    const [, group] = groups.find(([pattern]) => pattern.test(path)) ?? []
    if (group !== undefined) page.frontmatter.group = group
  })
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, module) => {
    if (!module.kindOf([ReflectionKind.Module, ReflectionKind.Namespace])) return
    const [file] = context.getSymbolFromReflection(module)?.declarations ?? []
    if (file?.parent !== undefined || file?.text === undefined) return
    const header = new MinimalSourceFile(headerOf(file.text), file.fileName)
    module.comment = new Comment(app.converter.parseRawComment(header, context.project.files).content)
  })
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getChildrenByKind(ReflectionKind.Module)) {
      module.name = module.name === "index" ? "kernai" : `kernai/${module.name}`
    }
  })
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module | ReflectionKind.Namespace)) {
      for (const child of module.children ?? []) {
        const heading = headingOf(child)
        if (heading !== undefined) setHeading(child, heading)
      }
    }
  })
  app.renderer.on(IndexEvent.PREPARE_INDEX, ({ searchFields, searchFieldWeights, searchResults }) => {
    searchFieldWeights.qualified = 10
    for (const [index, { name, parent }] of searchResults.entries()) {
      if (parent?.kindOf(ReflectionKind.SomeModule)) searchFields[index].qualified = `${parent.name}.${name}`
    }
  })
}

// Names modules as they are imported and pages by their first heading, groups pages by their folder, and shows the
// header of each module.
import { Comment, Converter, MinimalSourceFile, ReflectionKind } from "typedoc"

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
}

import { KpngError } from '@kpng/api'
import { isFields } from '../../kubernetes/fields.js'
import { locate, readDocuments } from '../yaml.js'
import { ContentBuilder, type FileContent } from './content.js'
import { isManifest, type ManifestOptions, readManifest } from './manifests.js'
import { ShapeError, wrongKind } from './shape.js'
import { isStateFile, readStateFile } from './state-file.js'

/**
 * Reads the text of a file. Each document in it is a state file or a Kubernetes object; an empty file is an empty state. Throws a
 * KpngError with file, line and column if the file as a whole cannot be used; single items that cannot be used are in `skipped`.
 */
export function readContent(file: string, text: string, options: ManifestOptions): FileContent {
  const content = new ContentBuilder()
  for (const [index, document] of readDocuments(file, text).entries()) {
    try {
      readDocument(document, options, content)
    } catch (error) {
      if (!(error instanceof ShapeError)) throw error
      const { line, column } = locate(text, index, error.place, error.part)
      throw new KpngError('invalid', `${file}:${line}:${column}: ${error.message}`)
    }
  }
  return content.build()
}

const expected = 'a state file (with nodes: and services:) or a Kubernetes object (with kind:)'

function readDocument(document: unknown, options: ManifestOptions, content: ContentBuilder): void {
  if (document === null || document === undefined) return
  if (!isFields(document)) throw wrongKind([], expected, document)
  if (isManifest(document)) readManifest(document, options, content)
  else if (isStateFile(document)) readStateFile(document, content)
  else throw wrongKind([], expected, document, `a map with ${Object.keys(document).slice(0, 5).join(', ')}`)
}

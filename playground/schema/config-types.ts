/** ConfigMap, Secret and ServiceAccount, in `k8s.io/api/core/v1`. */
export const configTypes = `
ConfigMap: Configuration data for pods.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta #1 | Names, labels and life cycle.
  data {}string #2 | Texts by name.
  binaryData {}bytes #3 | Bytes by name, in base64.
  immutable boolean #4 | True: the data cannot be changed.
Secret: Confidential data for pods.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta #1 | Names, labels and life cycle.
  data {}bytes #2 | Bytes by name, in base64.
  stringData {}string #4 | Texts by name; they are stored in data.
  type string #3 | What the data is for; default Opaque.
  immutable boolean #5 | True: the data cannot be changed.
ServiceAccount: An identity for pods.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta #1 | Names, labels and life cycle.
  secrets []ObjectReference #2 merge=name map=name | Secrets that its pods may use.
  imagePullSecrets []LocalObjectReference #3 | Secrets for pulling images.
  automountServiceAccountToken boolean #4 | Whether its pods get a token.
`

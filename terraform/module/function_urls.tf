# The alternative to the HTTP API: a function URL for each function except the dispatcher. The URLs
# require SigV4. Callers need lambda:InvokeFunctionUrl and lambda:InvokeFunction.

locals {
  url_functions = { for name in toset(values(local.routes)) : name => local.functions[name] if !local.make_api }
}

resource "aws_lambda_function_url" "this" {
  for_each = local.url_functions

  function_name      = each.value.name
  authorization_type = "AWS_IAM"
  invoke_mode        = "BUFFERED"
}

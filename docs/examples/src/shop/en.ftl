# What the shop says in English. The dots of a key are written as "-" here.

shop-welcome = Welcome to the corner shop! What can I do for you?
shop-menu-order = Order something
shop-menu-track = Where is my order?
shop-menu-orders = My orders
shop-menu-language = Language

shop-lost = Say /start to see what I can do.
shop-too-fast = One thing at a time, please: I am still reading.

shop-language-which = Which language shall we speak?
shop-language-changed = We speak English now.

shop-product-coffee = Coffee
shop-product-tea = Tea
shop-product-cake = Cake

shop-order-what = What would you like?
shop-order-count = How many { $product ->
    [coffee] coffees
    [tea] teas
   *[cake] pieces of cake
 }?
shop-order-count-again = A number, please, such as 2.
shop-order-how = Shall we deliver it?
shop-order-pick-up = I pick it up
shop-order-deliver = Deliver it
shop-order-still-there = Are you still there? Your order waits for you.
shop-order-lapsed = I have put your order back on the shelf. Say /order to begin again.
shop-order-wholesale = That is a lot! Please call us, and we find a good price.
shop-order-ready = It is ready for you in ten minutes.
shop-order-on-its-way = It is on its way to { $address }.

shop-address-street = Which street and number?
shop-address-town = Which town?
shop-address-confirm = { $street }, { $town }: is that right?

shop-receipt = Order { $number }: { $count } × { $product ->
    [coffee] coffee
    [tea] tea
   *[cake] cake
 }, { $price } €.

shop-orders = { $count ->
    [0] You have not ordered anything yet.
    [one] You have one order:
   *[other] You have { $count } orders:
 }
shop-orders-line = { $number }: { $count } × { $product ->
    [coffee] coffee
    [tea] tea
   *[cake] cake
 }, { $price } €

shop-track-none = You have not ordered anything yet.
shop-track-which = Which order do you mean?
shop-track-unknown = I know no such order. Which number does it have?
shop-track-stage = Order { $number } { $stage ->
    [riding] is on a bicycle and nearly there.
   *[waiting] waits for you at the counter.
 }
